package plan

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"

	"github.com/enipool/enipool/pkg/page"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page.html").Parse(pageText))

// pageView is what the page shows.
type pageView struct {
	Style     template.CSS
	Policy    string
	Head      string // the verdict
	Bad       bool   // something does not fit
	Reasons   []string
	Instances []pageInstance
	Sheets    []sheet // of topologies
	Remarks   []string
}

type pageInstance struct {
	Name  string
	Facts []string
	sheet
	Remarks []string
}

// writePage writes the page, if one is asked for, and says so.
func (f *commandFlags) writePage(said io.Writer, plans []planned) error {
	if !f.Given("html") {
		return nil
	}
	file, err := cli.NewPageFile(f.html)
	if err != nil {
		return fmt.Errorf("--html %s: %w", cli.Spelled(f.html), err)
	}
	defer file.Discard()
	if err := file.Write(func(w io.Writer) error { return pageTemplate.Execute(w, viewOf(plans)) }); err != nil {
		return fmt.Errorf("--html %s: %w", cli.Spelled(f.html), err)
	}
	fmt.Fprintf(said, "wrote %s\n", f.html)
	return nil
}

func viewOf(plans []planned) pageView {
	var view pageView
	view.Style = template.CSS(page.Base())
	view.Policy = page.Parts{Styles: []page.Trusted{page.Base()}}.Policy()
	view.Head, view.Reasons = verdictOn(plans)
	view.Bad = slices.ContainsFunc(plans, planned.isMissed)
	for i, p := range plans {
		if i > 0 && plans[i-1].Instance == p.Instance {
			continue
		}
		of := plansOf(plans[i:], p.Instance)
		is := pageInstance{Name: p.Instance, Facts: factLines(p), sheet: sheetOf(of)}
		for _, each := range of {
			for _, line := range each.remarkLines() {
				is.Remarks = append(is.Remarks, fmt.Sprintf("max-pods %d: %s", each.MaxPods, line))
			}
		}
		view.Instances = append(view.Instances, is)
	}
	if t := plans[0].Topologies; t != nil {
		view.Sheets, view.Remarks = topologySheets(*t), topologyLines(*t)
	}
	return view
}

// verdictOn says whether what is needed fits, or how much fits where nothing was said to be needed.
func verdictOn(plans []planned) (head string, reasons []string) {
	asked := slices.ContainsFunc(plans, func(p planned) bool { return p.Answer != nil || p.Topologies != nil })
	switch {
	case slices.ContainsFunc(plans, planned.isMissed):
		head = "It does not fit"
	case asked:
		head = "It fits"
	default:
		head = "What these subnets carry"
	}
	for _, p := range plans {
		of := fmt.Sprintf("%s, max-pods %d", p.Instance, p.MaxPods)
		reasons = append(reasons, fmt.Sprintf("%s: %d nodes with %d pods; the limit is %s", of, p.Carries.Nodes, p.Carries.Pods, p.Carries.Limit))
		for _, line := range p.needLines() {
			reasons = append(reasons, of+": "+line)
		}
	}
	if t := plans[0].Topologies; t != nil {
		lines := topologyLines(*t)
		reasons = append(reasons, lines[len(lines)-1]) // whether they fit is the last one
	}
	return head, reasons
}
