package report

import (
	"embed"
	"html/template"
	"io"
	"slices"

	shared "github.com/enipool/enipool/pkg/page"
	"github.com/enipool/enipool/pkg/simulate"
)

//go:embed page.html page.css page.js uplot
var files embed.FS

// page is the template of the HTML.
var page = template.Must(template.New("page.html").ParseFS(files, "page.html"))

// pageView is what the template shows.
type pageView struct {
	Report
	Facts   []fact
	Sheets  []pageSheet
	Lowest  bool // of a column is marked
	Asked   []pageRequests
	Heads   []string // of their tables
	Hosted  []pageHosted
	Hosts   []string // the heads of their tables
	Plots   plots
	Policy  template.HTML
	Styles  []template.CSS
	Scripts []template.JS
	Library string // the licence of the charting library
}

// pageSheet is a table of settings.
type pageSheet struct {
	Groups []pageGroup
	Rows   []pageRow
}

// pageRequests are the requests of a setting.
type pageRequests struct {
	Name string
	Rows []requestRow
	All  bool // pods had an address at the end
}

// pageHosted is how pods of topologies fared with a setting.
type pageHosted struct {
	Name string
	Rows []hostedRow
}

// pageGroup is some columns under one head.
type pageGroup struct {
	Name    string
	Columns []pageColumn
}

type pageColumn struct{ Name, Means string }

// pageRow is a setting with its numbers.
type pageRow struct {
	Name  string
	Hue   int // which of the colours it has
	Cells []pageCell
}

type pageCell struct {
	cell
	First bool // of its group
}

// hues is how many colours the page has for settings.
const hues = 8

// HTML writes the report as one page with everything in it: data, plots, style.
// It loads nothing, and forbids the browser to.
func (r Report) HTML(w io.Writer) error {
	view := pageView{Report: r, Facts: r.facts(), Asked: requestsOf(r.Results), Heads: requestHeads[:],
		Hosted: hostedOf(r.Results), Hosts: hostedHeads[:], Plots: plotsOf(r)}
	for _, s := range sheetsOf(r.Results) {
		rows := s.pageRows(r.Results)
		for _, row := range rows {
			view.Lowest = view.Lowest || slices.ContainsFunc(row.Cells, func(c pageCell) bool { return c.Lowest })
		}
		view.Sheets = append(view.Sheets, pageSheet{s.pageGroups(), rows})
	}
	parts := shared.Parts{Styles: []shared.Trusted{shared.Trusted(embeddedText("uplot/uPlot.min.css")), shared.Base(), shared.Trusted(embeddedText("page.css"))},
		Scripts: []shared.Trusted{shared.Trusted(embeddedText("uplot/uPlot.iife.min.js")), shared.Trusted(embeddedText("page.js"))}}
	for _, text := range parts.Styles {
		view.Styles = append(view.Styles, template.CSS(text))
	}
	for _, text := range parts.Scripts {
		view.Scripts = append(view.Scripts, template.JS(text))
	}
	view.Policy = template.HTML(`<meta http-equiv="Content-Security-Policy" content="` + parts.Policy() + `">`)
	view.Library = embeddedText("uplot/LICENSE")
	return page.Execute(w, view)
}

// embeddedText returns an embedded file.
func embeddedText(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is part of the program
	}
	return string(data)
}

func (s sheet) pageGroups() []pageGroup {
	var list []pageGroup
	for _, c := range s {
		if len(list) == 0 || list[len(list)-1].Name != c.group {
			list = append(list, pageGroup{Name: c.group})
		}
		last := &list[len(list)-1]
		last.Columns = append(last.Columns, pageColumn{c.name, c.means})
	}
	return list
}

// requestsOf returns the requests of the settings of which that is told.
func requestsOf(results []simulate.Result) []pageRequests {
	var list []pageRequests
	for _, r := range results {
		if r.Served != nil {
			list = append(list, pageRequests{r.Name, requestRows(*r.Served), r.Served.All})
		}
	}
	return list
}

// hostedOf returns how pods of topologies fared with the settings that had some.
func hostedOf(results []simulate.Result) []pageHosted {
	var list []pageHosted
	for _, r := range results {
		if r.Topologies != nil {
			list = append(list, pageHosted{r.Name, hostedRows(*r.Topologies)})
		}
	}
	return list
}

func (s sheet) pageRows(results []simulate.Result) []pageRow {
	var list []pageRow
	for i, cells := range s.cellRows(results) {
		row := pageRow{Name: results[i].Name, Hue: i % hues}
		for at, c := range s {
			first := at > 0 && s[at-1].group != c.group
			row.Cells = append(row.Cells, pageCell{cells[at], first})
		}
		list = append(list, row)
	}
	return list
}
