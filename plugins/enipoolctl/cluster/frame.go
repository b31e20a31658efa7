package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// column is one of a table.
type column[R any] struct {
	head   string
	cell   func(R) any
	hidden bool
}

// moment is when a table is shown, and how.
type moment struct {
	now    time.Time
	leader Leader
	wide   bool
}

// frame is the rows of one kind, the worst first, and how they are shown: below who leads.
type frame[R any] struct {
	name    string // of the rows, for programs
	rows    []R
	none    string // what is said where there are no rows; "": the heads stand alone
	columns func(moment) []column[R]
}

// showRows prints the rows in a format.
func (f frame[R]) showRows(ctx context.Context, api *API, output string, out io.Writer) error {
	leader := api.FindLeader(ctx)
	return cli.PrintAs(out, output, led[R]{leader, f.name, f.rows}, func() error {
		return f.printTable(out, moment{time.Now(), leader, output == "wide"})
	})
}

func (f frame[R]) printTable(out io.Writer, at moment) error {
	fmt.Fprintf(out, "%s\n\n", at.leader.Line(at.now))
	if len(f.rows) == 0 && f.none != "" {
		fmt.Fprintln(out, f.none)
		return nil
	}
	columns := f.columns(at)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, lineOf(columns, func(c column[R]) any { return c.head }))
	for _, r := range f.rows {
		fmt.Fprintln(table, lineOf(columns, func(c column[R]) any { return c.cell(r) }))
	}
	return table.Flush()
}

// lineOf is a line of the columns that are not hidden.
func lineOf[R any](columns []column[R], text func(column[R]) any) string {
	var cells []string
	for _, c := range columns {
		if !c.hidden {
			cells = append(cells, fmt.Sprint(text(c)))
		}
	}
	return strings.Join(cells, "\t")
}

// led is rows and who leads, as programs read them. A list is there without rows too.
type led[R any] struct {
	leader Leader
	name   string
	rows   []R
}

// MarshalJSON writes the rows under their own name, behind who leads.
func (l led[R]) MarshalJSON() ([]byte, error) {
	leader, errLeader := json.Marshal(l.leader)
	rows, errRows := json.Marshal(append([]R{}, l.rows...))
	return fmt.Appendf(nil, `{"leader":%s,%q:%s}`, leader, l.name, rows), errors.Join(errLeader, errRows)
}
