package agent

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Somebody detaches ENIs at random, and the cloud refuses to tell of subnets half of the time, beside all else
// that goes wrong: nothing of such an ENI is served again, and in the end all comes right.
func TestENIsThatSomebodyDetachesAtRandomLoseNothingElse(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSoaker(t, seed, func(*testNode) {})
				for range 400 {
					switch n := s.nodes[s.r.IntN(len(s.nodes))]; s.r.IntN(40) {
					case 0:
						s.note("half of the describes of subnets are refused")
						s.account.SetFaults(sim.Chance{Action: sim.ActSubnets, Percent: 50, Fault: sim.Fault{Err: cloud.ErrForbidden}})
					case 1:
						s.detach(n)
					}
					s.step()
					s.after()
				}
				s.calm()
			})
		}) {
			return
		}
	}
}

// detach takes an ENI off a node behind its back. What pods have of it is nobody's fault.
func (s *soaker) detach(n *testNode) {
	nics := n.attached()
	nic := nics[s.r.IntN(len(nics))]
	if nic.Index <= 0 {
		return
	}
	for _, addr := range nic.Addresses {
		s.taken[addr] = true
	}
	s.note("%s: somebody detaches %s", n.name, nic.ID)
	if err := s.account.Detach(nic.ID); err != nil {
		s.note("which fails: %v", err) // it is on its way
	}
}
