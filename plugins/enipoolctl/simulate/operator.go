package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/topology"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// operated is the part of the flags about an operator that calls the cloud for all nodes.
type operated struct {
	operator bool
	share    int

	topologyShare, places, drained int
	strategy                       string
}

// register adds the flags to a command, which says what it does with an operator.
func (o *operated) register(cmd *cobra.Command, what string) {
	flags := cmd.Flags()
	flags.BoolVar(&o.operator, "operator", false, what)
	flags.IntVar(&o.share, "share", 80, "percent of the account's rates that the operator takes")
	flags.IntVar(&o.topologyShare, "topology-share", 0, "percent of each node's pods that belong to topologies, with --operator")
	flags.StringVar(&o.strategy, "topology-strategy", "sticky", "how long their addresses stay with the name of a pod: "+strings.Join(strategies(), ", "))
	flags.IntVar(&o.places, "topology-places", 0, "addresses of a node that are kept for them; default: pool.topologyPlaces of --config, else as many whole ENIs as they need")
	flags.IntVar(&o.drained, "drain", 0, "nodes that are drained of them a minute after all pods have addresses")
	cli.Offer(cmd, "share", "50", "80", "100")
	cli.Offer(cmd, "topology-share", "10", "20", "50")
	cli.Offer(cmd, "topology-strategy", strategies()...)
	cli.Offer(cmd, "topology-places")
	cli.Offer(cmd, "drain")
}

// checkOperator judges the numbers about an operator.
func (f *playFlags) checkOperator() error {
	switch {
	case !f.operator:
		return nil
	case f.nodes > simulate.MostFleet:
		return fmt.Errorf("--nodes %d: must be at most %d with --operator", f.nodes, simulate.MostFleet)
	case f.share < 1 || f.share > 100:
		return fmt.Errorf("--share %d: must be from 1 to 100", f.share)
	case f.lead != 0:
		return errors.New("--lead: is for agents that call the cloud themselves; leave it out with --operator")
	}
	return f.checkTopologies()
}

// strategies are what pods of topologies are played with.
func strategies() []string {
	return []string{strings.ToLower(string(topology.Elastic)), strings.ToLower(string(topology.Sticky)), strings.ToLower(string(topology.Fixed))}
}

// checkTopologies judges the numbers about pods of topologies.
func (f *playFlags) checkTopologies() error {
	if f.topologyShare == 0 {
		for _, name := range []string{"topology-places", "topology-strategy", "drain"} {
			if f.Given(name) {
				return fmt.Errorf("--%s: is for pods of topologies; say how many there are with --topology-share", name)
			}
		}
	}
	switch {
	case f.topologyShare < 0 || f.topologyShare > 99:
		return fmt.Errorf("--topology-share %d: must be from 0 to 99", f.topologyShare)
	case !slices.Contains(strategies(), f.strategy):
		return fmt.Errorf("--topology-strategy %s: must be one of %s", cli.Spelled(f.strategy), strings.Join(strategies(), ", "))
	case f.drained < 0:
		return fmt.Errorf("--drain %d: must be at least 0", f.drained)
	}
	return f.AtLeast("topology-places", f.places, 1)
}

// hosted is the part of a node's pods that belongs to topologies, for which the agent's file may keep places.
func (f *playFlags) hosted(nodes int, l eni.Limits, configured int) simulate.Hosted {
	if f.topologyShare == 0 {
		return simulate.Hosted{}
	}
	h := simulate.Hosted{Pods: (f.pods*f.topologyShare + 99) / 100, Keeps: f.strategy != strategies()[0], Drained: f.drained, Places: cmp.Or(f.places, configured)}
	if h.Places == 0 {
		h.Places = h.PlacesFor(nodes, l)
	}
	return h
}

// fleet is the nodes of a load for an operator.
func (f *playFlags) fleet(l simulate.Load) *simulate.Fleet {
	return &simulate.Fleet{Nodes: len(l.Nodes), Pods: f.pods, Cold: l.Cold || f.load == usualLoad, Share: f.share}
}

// lengthen plays for as long as the operator takes, unless somebody has said how long.
func (f *playFlags) lengthen(s *simulation) (err error) {
	if f.Given("duration") {
		return nil
	}
	f.duration = max(f.duration, s.longest())
	s.load, err = f.makeLoad()
	return err
}

// longest is how long the operator takes by the slowest of the settings.
func (s simulation) longest() (d time.Duration) {
	for _, setting := range s.settings {
		d = max(d, s.fleet.Length(s.world, setting))
	}
	return d
}
