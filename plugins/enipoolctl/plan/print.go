package plan

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func printPlans(w io.Writer, output string, plans []planned) error {
	if output == "csv" {
		return printPlansCSV(w, plans)
	}
	all := struct { // a list would have no room for the version of its format
		Plans []planned `json:"plans"`
	}{plans}
	return cli.PrintAs(w, output, all, func() error {
		for i, p := range plans {
			if i == 0 || plans[i-1].Instance != p.Instance {
				if i > 0 {
					fmt.Fprintln(w)
				}
				if err := printInstance(w, plansOf(plans[i:], p.Instance)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// plansOf returns the plans at the head of the list that are of one instance type.
func plansOf(plans []planned, name string) []planned {
	for i, p := range plans {
		if p.Instance != name {
			return plans[:i]
		}
	}
	return plans
}

func printInstance(w io.Writer, plans []planned) error {
	fmt.Fprintln(w, strings.Join(factLines(plans[0]), "\n")+"\n")
	if err := sheetOf(plans).print(w); err != nil {
		return err
	}
	for _, p := range plans {
		if lines := p.remarkLines(); len(lines) > 0 {
			fmt.Fprintf(w, "\nwith max-pods %d\n  %s\n", p.MaxPods, strings.Join(lines, "\n  "))
		}
	}
	if plans[0].Topologies != nil {
		return printTopologies(w, *plans[0].Topologies)
	}
	return nil
}

// factLines says what an instance and its cloud are.
func factLines(first planned) []string {
	quota := fmt.Sprintf("%d ENIs", first.Quota)
	if first.Quota == 0 {
		quota = "any number of ENIs"
	}
	what := "addresses,"
	if first.Prefixes {
		what = "addresses in prefixes,"
	}
	// Without a cloud its defaults are bounds that hold in each, which people should know.
	cloud := first.Cloud
	if cloud == "" {
		cloud = "not named with --cloud"
	}
	kept := ""
	if first.Places > 0 {
		kept = "; " + account.KeptText(first.KeptENIs, first.Places)
	}
	return []string{
		fmt.Sprintf("instance %s: %d x %d %s at most %d pods%s", first.Instance, first.MaxENIs, first.IPsPerENI, what, first.NodeMost, kept),
		fmt.Sprintf("cloud    %s: keeps %d addresses of a subnet, allows %s", cloud, first.Reserved, quota),
	}
}

// sheet is a table, as texts and pages show it.
type sheet struct {
	Heads []string
	Rows  [][]string
}

func (s sheet) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range append([][]string{s.Heads}, s.Rows...) {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	return t.Flush()
}

// sheetOf is the table of an instance's plans.
func sheetOf(plans []planned) sheet {
	s := sheet{Heads: strings.Fields("MAX-PODS SUBNET ZONE AVAILABLE ENIS/NODE IPS/NODE NODES PODS WASTED LIMIT")}
	for _, p := range plans {
		for _, r := range rowsOf(p.Plan) {
			name := r.Subnet
			if r.scope != "subnet" {
				name = r.scope
			}
			line := []string{strconv.Itoa(p.MaxPods), name, cli.OrDash(r.Zone)}
			for _, n := range []int{r.Available, r.ENIsPerNode, r.IPsPerNode, r.Nodes, r.Pods} {
				line = append(line, strconv.Itoa(n))
			}
			s.Rows = append(s.Rows, append(line, fmt.Sprintf("%d (%s%%)", r.Wasted, r.WastedShare), string(r.Limit)))
		}
	}
	return s
}

// row is a line of the table or of the csv.
type row struct {
	scope string // subnet, zone or cluster
	capacity.InPlan
}

// rowsOf returns the subnets, the zones if they are several, and the cluster.
func rowsOf(p capacity.Plan) []row {
	var rows []row
	for _, s := range p.Subnets {
		rows = append(rows, row{"subnet", s})
	}
	if len(p.Zones) > 1 {
		for _, z := range p.Zones {
			rows = append(rows, row{"zone", capacity.InPlan{Zone: z.Zone, Carries: z.Carries}})
		}
	}
	return append(rows, row{"cluster", capacity.InPlan{Carries: p.Carries}})
}

// remarkLines says in sentences what a table can't.
func (p planned) remarkLines() []string {
	var lines []string
	for _, n := range p.Notes {
		lines = append(lines, "note: "+n)
	}
	if p.AtMost > p.ByIPs {
		lines = append(lines, fmt.Sprintf("note: %d nodes were found to fit, no way of dealing out ENIs has more than %d", p.ByIPs, p.AtMost))
	}
	return append(lines, p.needLines()...)
}

// needLines says whether what is needed fits, what of the quota it takes, and how long it takes to start it.
func (p planned) needLines() []string {
	if p.Answer == nil {
		return nil
	}
	return slices.Concat(answerLines(*p.Answer), []string{p.quotaLine(*p.Answer)}, p.Operator.lines())
}

// quotaLine says how many ENIs the nodes of the need have, beside what they may have.
func (p planned) quotaLine(a capacity.Answer) string {
	kept, quota := "", fmt.Sprintf("the quota is %d", p.Quota)
	if p.KeptENIs > 0 {
		kept = fmt.Sprintf(", %d of them kept for topologies", a.Nodes*p.KeptENIs)
	}
	switch {
	case a.ENIs == 0:
		return fmt.Sprintf("%d nodes take no ENI of the quota: pods have addresses of main interfaces", a.Nodes)
	case p.Quota == 0:
		quota = "any number is allowed"
	case p.Used > 0:
		quota += fmt.Sprintf(", of which others use %d", p.Used)
	}
	return fmt.Sprintf("%d nodes need %d ENIs%s; %s", a.Nodes, a.ENIs, kept, quota)
}

func answerLines(a capacity.Answer) []string {
	var need []string
	if a.Need.Nodes > 0 {
		need = append(need, fmt.Sprintf("%d nodes", a.Need.Nodes))
	}
	if a.Need.Pods > 0 {
		need = append(need, fmt.Sprintf("%d pods", a.Need.Pods))
	}
	head := "needed: " + strings.Join(need, " and ")
	if a.Met {
		return []string{head + ": fits"}
	}
	missing := []string{fmt.Sprintf("%d nodes", a.NodesMore)}
	for _, m := range []struct {
		n    int
		what string
	}{{a.PodsMore, "pods"}, {a.IPsMore, "addresses"}, {a.ENIsMore, "ENIs of quota"}} {
		if m.n > 0 {
			missing = append(missing, fmt.Sprintf("%d %s", m.n, m.what))
		}
	}
	lines := []string{head + ": does not fit, missing " + strings.Join(missing, ", ")}
	if len(a.Smallest) > 0 {
		lines = append(lines, "smallest new subnets: "+newText(a.Smallest, ", "))
	}
	if len(a.Alike) > 0 {
		lines = append(lines, "new subnets of one size: "+newText(a.Alike, " or "))
	}
	return lines
}

func newText(list []capacity.New, separator string) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = n.String()
	}
	return strings.Join(words, separator)
}

var csvColumns = strings.Fields(`machine maxPods scope subnet zone available enisPerNode ipsPerNode nodes pods enis fullENIs
	used wasted wastedPercent limit missingNodes missingPods missingAddresses missingENIQuota smallestSubnets
	neededENIs eniQuota operatorShare operatorNodes operatorPods operatorChanges operatorAfter operatorBy operatorPlanned operatorPlannedAfter`)

// printPlansCSV prints a row for each subnet, zone and cluster, in columns named
// like the keys of the json.
func printPlansCSV(w io.Writer, plans []planned) error {
	out := csv.NewWriter(w)
	lines := [][]string{csvColumns}
	for _, p := range plans {
		for _, r := range rowsOf(p.Plan) {
			line := []string{p.Instance, strconv.Itoa(p.MaxPods), r.scope, r.Subnet, r.Zone}
			for _, n := range []int{r.Available, r.ENIsPerNode, r.IPsPerNode, r.Nodes, r.Pods, r.ENIs, r.FullENIs, r.Used, r.Wasted} {
				line = append(line, strconv.Itoa(n))
			}
			line = append(line, r.WastedShare.String(), string(r.Limit))
			lines = append(lines, slices.Concat(line, missingCells(r, p.Answer), p.quotaCells(r), p.operatorCells(r)))
		}
	}
	return out.WriteAll(lines)
}

func missingCells(r row, a *capacity.Answer) []string {
	if r.scope != "cluster" || a == nil {
		return make([]string, 5)
	}
	var cells []string
	for _, n := range []int{a.NodesMore, a.PodsMore, a.IPsMore, a.ENIsMore} {
		cells = append(cells, strconv.Itoa(n))
	}
	return append(cells, newText(a.Smallest, " + "))
}

func (p planned) quotaCells(r row) []string {
	if r.scope != "cluster" || p.Answer == nil {
		return make([]string, 2)
	}
	return []string{strconv.Itoa(p.Answer.ENIs), strconv.Itoa(p.Quota)}
}

func (p planned) operatorCells(r row) []string {
	o := p.Operator
	if r.scope != "cluster" || o == nil {
		return make([]string, 8)
	}
	return []string{strconv.Itoa(o.Share), strconv.Itoa(o.Nodes), strconv.Itoa(o.Pods), strconv.Itoa(o.Changes), secondsText(o.After), o.By, strconv.Itoa(o.Planned), secondsText(o.PlannedAfter)}
}

// secondsText is a time as json has it.
func secondsText(s simulate.Seconds) string {
	text, _ := s.MarshalJSON() // a number always can be
	return string(text)
}
