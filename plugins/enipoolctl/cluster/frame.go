package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	isBad   func(R) bool
}

// showRows prints the rows in the picture's format.
func (f frame[R]) showRows(ctx context.Context, api *API, p *picture) error {
	leader := api.FindLeader(ctx)
	return cli.PrintAs(p, p.output, led[R]{leader, f.name, f.rows}, func() error {
		return f.printTable(p, moment{time.Now(), leader, p.output == "wide"})
	})
}

func (f frame[R]) printTable(p *picture, at moment) error {
	p.say(at.leader.isMissed(), at.leader.Line(at.now))
	p.say(false, "")
	if len(f.rows) == 0 && f.none != "" {
		p.say(false, f.none)
		return nil
	}
	columns := f.columns(at)
	lines := []string{lineOf(columns, func(c column[R]) any { return c.head })}
	for _, r := range f.rows {
		lines = append(lines, lineOf(columns, func(c column[R]) any { return c.cell(r) }))
	}
	return p.sayTable(lines, func(i int) bool { return i > 0 && f.isBad(f.rows[i-1]) })
}

// sayTable writes lines of cells with tabs between them as a table.
func (p *picture) sayTable(lines []string, isBad func(i int) bool) error {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(table, strings.ReplaceAll(line, "\n", " "))
	}
	err := table.Flush()
	i := 0
	for line := range strings.Lines(text.String()) {
		p.say(isBad(i), strings.TrimSuffix(line, "\n"))
		i++
	}
	return err
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
