package cli

import (
	"bytes"
	"io"
	"strings"
	"text/tabwriter"
)

// sheet is what is shown once on a terminal, as wide as that is.
type sheet struct {
	bytes.Buffer
	columns int
}

// Table is a table whose rows are cut to the terminal on which they are shown: rows that wrap can't be read as columns. Elsewhere they are whole.
type Table struct {
	*tabwriter.Writer
	text    *bytes.Buffer
	out     io.Writer
	columns int // 0 for any number of them
}

// NewTable returns a table that Flush writes to out: what Painted has given, for a terminal. A whole one is never cut.
func NewTable(out io.Writer, whole bool) *Table {
	t := &Table{text: new(bytes.Buffer), out: out}
	if s, is := out.(*sheet); is && !whole {
		t.columns = s.columns
	}
	t.Writer = tabwriter.NewWriter(t.text, 0, 0, 2, ' ', 0)
	return t
}

// Flush writes the table.
func (t *Table) Flush() error {
	if err := t.Writer.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.text.String()) {
		if _, err := io.WriteString(t.out, cut(strings.TrimSuffix(line, "\n"), t.columns)+"\n"); err != nil {
			return err
		}
	}
	t.text.Reset()
	return nil
}
