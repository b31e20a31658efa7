package simulate

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/simulate"
)

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
	return nil
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
	for _, setting := range s.settings {
		f.duration = max(f.duration, s.fleet.Length(s.world, setting))
	}
	s.load, err = f.makeLoad()
	return err
}
