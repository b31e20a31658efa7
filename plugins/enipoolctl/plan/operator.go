package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/simulate/report"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// operated are the flags about an operator that calls the cloud for all nodes.
type operated struct {
	operator bool
	share    int
}

// start is what an operator asks of the cloud when the nodes of the need start at once.
type start struct {
	Share        int `json:"share"` // percent of the account's rates that it takes
	Nodes        int `json:"nodes"`
	Pods         int `json:"pods"` // of all nodes, that get addresses
	TopologyPods int `json:"topologyPods,omitempty"`
	simulate.Soonest
	LeftOut string `json:"leftOut,omitempty"` // which pods are not among them, and why
}

func (o *operated) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.operator, "operator", false, "say how long it takes at least until pods have addresses when all of --nodes start at once, with an operator that calls the cloud for them")
	cmd.Flags().IntVar(&o.share, "share", 80, "percent of the account's rates that the operator takes")
	cli.Offer(cmd, "share", "50", "80", "100")
}

// checkOperator refuses what can't be reckoned, before anything is planned.
func (f *commandFlags) checkOperator() error {
	switch {
	case !f.operator && f.Given("share"):
		return errors.New("--share: is for --operator")
	case !f.operator:
		return nil
	case f.forAutoscalers():
		return errors.New("--operator: is for a plan; leave it out with --karpenter and --cluster-autoscaler")
	case f.share < 1 || f.share > 100:
		return fmt.Errorf("--share %d: must be from 1 to 100", f.share)
	case !f.Given("nodes"):
		return errors.New("--operator: say how many nodes start at once with --nodes")
	case f.need.Nodes > simulate.MostFleet:
		return fmt.Errorf("--nodes %d: must be at most %d with --operator", f.need.Nodes, simulate.MostFleet)
	}
	return nil
}

// rates returns those of an account of the cloud.
func (f *commandFlags) rates() (r simulate.Rates, err error) {
	switch f.Cloud {
	case "aws":
		return simulate.EC2(), nil
	case "baidu":
		return simulate.BCE(), nil
	}
	return r, fmt.Errorf("--operator: say with --cloud whose rates it takes: %s", strings.Join(account.Clouds(), " or "))
}

// startAll reckons what it takes to start the nodes of the need at once with max-pods each, or with what --pods comes to for each. It is
// nil if nobody asked.
func (f *commandFlags) startAll(node keptNode, maxPods int) (*start, error) {
	if !f.operator {
		return nil, nil
	}
	rates, err := f.rates()
	switch {
	case err != nil:
		return nil, err
	case node.ENIs > eni.MaxIndex+1:
		return nil, fmt.Errorf("--operator: a node has %d ENIs, and an agent knows at most %d", node.ENIs, eni.MaxIndex+1)
	}
	nodes, pods := f.need.Nodes, maxPods
	if f.need.Pods > 0 {
		pods = min(maxPods, each(f.need.Pods, nodes))
	}
	hosted, without := f.hostedOn(node)
	fleet := simulate.Fleet{Nodes: nodes, Pods: pods + hosted.Pods, Cold: true, Share: f.share, Topologies: hosted}
	// Max-pods of a plan are those that pods of topologies don't take.
	world := simulate.World{Limits: node.CloudLimits(), MaxPods: maxPods + hosted.Pods, Latency: simulate.UsualLatency(),
		Driver: rates.Driver, Mutating: rates.Mutating, Describing: rates.Describing, Buckets: rates.Buckets}
	soonest, err := fleet.Soonest(world, usualSetting())
	if err != nil {
		return nil, fmt.Errorf("--operator: %w", err)
	}
	return &start{f.share, nodes, nodes * fleet.Pods, nodes * hosted.Pods, soonest, without}, nil
}

// usualSetting is what agents do whose configuration says nothing else.
func usualSetting() simulate.Setting {
	c := agentconf.Default()
	return simulate.Setting{Name: c.Pool.Mode.String(), Config: c}
}

// hostedOn returns which pods of topologies a node has, of as many as there are on all nodes, and says which are left out.
func (f *commandFlags) hostedOn(node keptNode) (h simulate.Hosted, leftOut string) {
	all := 0
	for _, t := range f.objects.Topologies {
		all += t.Pods
	}
	if h.Places = node.places; node.enis == 0 {
		h.Places = 0
	}
	switch {
	case all == 0:
	case node.places == 0:
		leftOut = "pods of topologies are not among them: no place of a node is kept for them"
	case node.enis == 0:
		leftOut = "pods of topologies are not among them: ENIs of other subnets carry them"
	default:
		h.Pods = min(h.Places, each(all, f.need.Nodes))
	}
	return h, leftOut
}

// each is how many of something a node has at most where they are spread evenly.
func each(all, nodes int) int { return (all + nodes - 1) / nodes }

// lines says it in sentences.
func (s *start) lines() []string {
	if s == nil {
		return nil
	}
	by, pods := s.By, report.Number(s.Pods, "pod has its address", "pods have addresses")
	if by == "" {
		by = "all calls together"
	}
	if s.TopologyPods > 0 {
		pods = fmt.Sprintf("%s, %s of topologies among them, have addresses", report.Number(s.Pods, "pod", "pods"), strings.TrimSpace(report.Number(s.TopologyPods, "", "")))
	}
	text := fmt.Sprintf("starting %s at once: %s; with an operator that takes %d%% of the account's rates all %s after %s at the soonest (%s)",
		report.Number(s.Nodes, "node", "nodes"), report.Number(s.Changes, "request that changes something", "requests that change something"), s.Share, pods, report.Duration(s.After), by)
	if s.Planned > s.Changes {
		text += fmt.Sprintf("; with what nodes keep ready %s, after %s", report.Number(s.Planned, "request", "requests"), report.Duration(s.PlannedAfter))
	}
	lines := []string{text}
	if s.LeftOut != "" {
		lines = append(lines, "note: "+s.LeftOut)
	}
	return lines
}
