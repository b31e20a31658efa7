package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// Bounds of times: longer ones are slips of the pen.
const (
	mostPlayed = 31 * 24 * time.Hour
	mostWait   = 100 * time.Second // of the plugin's waitForAddress
	mostLead   = time.Hour
)

// simulation is all that is to be played.
type simulation struct {
	release      string
	instanceType string // of the nodes, "" if only its numbers are known
	world        simulate.World
	load         simulate.Load
	settings     []simulate.Setting
	fleet        *simulate.Fleet // the nodes for an operator, nil: none is played
	operated     bool            // by an operator alone
}

// readInput reads the flags and the files that they name.
func (f *playFlags) readInput(compare []string) (simulation, error) {
	f.settleDefaults()
	if err := f.checkNumbers(); err != nil {
		return simulation{}, err
	}
	base, err := f.baseConfig()
	if err != nil {
		return simulation{}, err
	}
	// The file says how the account is, as far as no flag does.
	if !f.Given("prefixes") {
		f.Prefixes = base.Cloud.Prefixes
	}
	s := simulation{release: f.release}
	if s.settings, err = comparedSettings(base, compare); err != nil {
		return simulation{}, err
	}
	m, err := f.nodeInstance()
	if err != nil {
		return simulation{}, err
	}
	if s.world, err = f.makeWorld(); err != nil {
		return simulation{}, err
	}
	if s.load, err = f.makeLoad(); err != nil {
		return simulation{}, err
	}
	if f.operator {
		s.fleet = f.fleet(s.load)
	}
	if s.world.Limits = m.CloudLimits(); s.fleet != nil {
		s.fleet.Topologies = f.hosted(s.fleet.Nodes, s.world.Limits, base.Pool.TopologyPlaces)
	}
	if m.Name != account.AsGiven {
		s.instanceType = m.Name
	}
	if s.world.MaxPods, err = f.podDensity(m, s.load.Peak(), base.MaxPods.Fixed); err != nil {
		return simulation{}, err
	}
	if s.world.Subnets, err = f.placeNodes(m, len(s.load.Nodes)); err != nil || s.fleet == nil {
		return s, err
	}
	return s, f.lengthen(&s)
}

// checkNumbers checks what can be checked one by one.
func (f *playFlags) checkNumbers() error {
	err := errors.Join(f.InstanceFlags.CheckNumbers(), cli.AtLeast("nodes", f.nodes, 1), cli.AtLeast("pods-per-node", f.pods, 1),
		f.AtLeast("max-pods", f.maxPods, 1), cli.AtLeast("eni-quota", f.quota, 0), f.checkOperator())
	for _, t := range []struct {
		flag           string
		d, least, most time.Duration
	}{
		{"duration", f.duration, time.Minute, mostPlayed}, {"stagger", f.stagger, 0, mostPlayed},
		{"wait", f.wait, 0, mostWait}, {"lead", f.lead, 0, mostLead},
	} {
		if t.d < t.least || t.d > t.most {
			err = errors.Join(err, fmt.Errorf("--%s %s: must be %s to %s", t.flag, keys.ShortDuration(t.d), keys.ShortDuration(t.least), keys.ShortDuration(t.most)))
		}
	}
	if err != nil {
		return cli.FirstLine(err)
	}
	return nil
}

// baseConfig returns the configuration that settings change.
func (f *playFlags) baseConfig() (agentconf.Config, error) {
	if f.config == "" {
		// Two keys have no default; a simulation looks at neither.
		c := agentconf.Default()
		c.Settings.SNAT, c.Cloud.Endpoint = false, "unix:///run/enipool/vpc.sock"
		if f.shared {
			c.Cloud.Describe = agentconf.SpareDescribe // as a file that names a real cloud has it
		}
		return c, nil
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return agentconf.Config{}, fmt.Errorf("--config: %w", err)
	}
	c, err := agentconf.Parse(text)
	switch {
	case err != nil:
		return c, fmt.Errorf("--config %s: %w", f.config, cli.FirstLine(err))
	case !slices.Equal(c.Settings.Families, []eni.Family{eni.IPv4}):
		return c, fmt.Errorf("--config %s: families: must be [ipv4]: IPv6 is not simulated", f.config)
	}
	return c, nil
}

// makeLoad returns the load: a trace's, or one that is made up.
func (f *playFlags) makeLoad() (simulate.Load, error) {
	switch {
	case f.Given("trace") == (f.Given("workload") || f.load != ""):
		return simulate.Load{}, errors.New("--trace, --workload: give one of them")
	case f.Given("trace") && f.Given("pods-per-node"):
		return simulate.Load{}, errors.New("--pods-per-node: is for --workload; a trace has its own")
	case f.Given("workload") && f.Given("stagger"):
		return simulate.Load{}, errors.New("--stagger: is for --trace; each node of --workload has pods of its own")
	case !f.operator && (f.topologyShare != 0 || f.drained != 0):
		return simulate.Load{}, errors.New("--topology-share, --drain: are for --operator, which alone serves topologies")
	case f.operator && (!f.shared || !simulate.AtOnce(f.load)):
		return simulate.Load{}, errors.New("--operator: is for --cloud with --workload start or surge: it says how long all pods take to have addresses")
	case f.Given("trace"):
		return f.playTrace()
	}
	if f.operator && f.nodes > simulate.MostNodes {
		return simulate.Fleet{Nodes: f.nodes, Pods: f.pods}.Load(f.load, f.duration), nil
	}
	if !slices.Contains(simulate.Kinds(), f.load) {
		return simulate.Load{}, fmt.Errorf("--workload %s: must be one of %s", cli.Spelled(f.load), strings.Join(simulate.Kinds(), ", "))
	}
	l, err := simulate.Generate(f.load, simulate.Shape{Nodes: f.nodes, Pods: f.pods, Duration: f.duration, Seed: f.seed})
	return l, asFlag(err)
}

// playTrace leaves to the trace what the flags don't say.
func (f *playFlags) playTrace() (simulate.Load, error) {
	file, err := os.Open(f.trace)
	if err != nil {
		return simulate.Load{}, fmt.Errorf("--trace: %w", err)
	}
	defer file.Close()
	trace, err := simulate.ParseTrace(f.trace, file)
	if err != nil {
		return simulate.Load{}, err
	}
	nodes, duration := 0, time.Duration(0)
	if f.Given("nodes") {
		nodes = f.nodes
	}
	// Who names no duration would wait for hours if a trace of a month were played to its end.
	if f.Given("duration") {
		duration = f.duration
	} else if trace.End > mostPlayed {
		return simulate.Load{}, fmt.Errorf("--trace %s: takes %s; say how much of it to play with --duration, at most %s", f.trace, keys.ShortDuration(trace.End), keys.ShortDuration(mostPlayed))
	}
	l, err := trace.Load(nodes, duration, f.stagger)
	if err == nil && f.stagger >= l.Duration {
		return l, fmt.Errorf("--stagger %s: must be less than what is played, %s", keys.ShortDuration(f.stagger), keys.ShortDuration(l.Duration))
	}
	return l, asFlag(err)
}

// asFlag turns an error like "nodes: 0: must be ..." into one about the flag.
func asFlag(err error) error {
	if err == nil {
		return nil
	}
	name, what, _ := strings.Cut(err.Error(), ": ")
	if name == "pods" { // of a load's shape, which tells those of a node
		name = "pods-per-node"
	}
	return fmt.Errorf("--%s %s", name, what)
}

// podDensity returns how many pods a node may run: what is given, or what is usual, but at
// least as many as the load has at once.
func (f *playFlags) podDensity(m account.Instance, peak, configured int) (int, error) {
	switch {
	case f.maxPods > m.Pods():
		return 0, fmt.Errorf("--max-pods %d: a node carries at most %d (%s)", f.maxPods, m.Pods(), m)
	case peak > m.Pods():
		return 0, fmt.Errorf("--%s: has %d pods at once on a node, which carries at most %d (%s)", f.loadText(), peak, m.Pods(), m)
	case f.maxPods > 0 && peak > f.maxPods:
		return 0, fmt.Errorf("--max-pods %d: --%s has %d pods at once on a node", f.maxPods, f.loadText(), peak)
	case f.maxPods > 0:
		return f.maxPods, nil
	}
	return min(m.Pods(), max(peak, cmp.Or(configured, usualPods))), nil
}

// usualPods is what a kubelet runs at most if nobody says otherwise.
const usualPods = 110

func (f *playFlags) loadText() string {
	if f.trace != "" {
		return "trace " + f.trace
	}
	return "workload " + f.load
}
