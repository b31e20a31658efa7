package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// attached returns how many ENIs the cloud has for the node, and how many of them
// are attached.
func (s *site) attached() (made, attached int) {
	for _, nic := range s.account.Snapshot().Nodes["n"] {
		made++
		if nic.Index >= 0 {
			attached++
		}
	}
	return made, attached
}

// An agent that is killed while it makes an ENI has one in the end, and not two.
func TestKilledWhileItMakesAnENITheAgentMakesNoSecondOne(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(s *site) bool{
		"asked":    func(s *site) bool { return s.account.Calls()[sim.ActCreate] == 1 },
		"made":     func(s *site) bool { made, _ := s.attached(); return made == 2 },
		"attached": func(s *site) bool { _, attached := s.attached(); return attached == 2 },
	} {
		t.Run(name, func(t *testing.T) {
			slow := map[string]sim.Latency{sim.ActCreate: {Base: 400 * time.Millisecond}, sim.ActAttach: {Base: 400 * time.Millisecond}}
			s := newSite(t, plan{name: "kill-" + name, limits: tiny, options: sim.Options{Latency: slow}})
			s.configure("pool.batch: 2", "leakAge: 1h")
			agent := s.start()
			s.poolOf(2)
			s.add("a", "b")
			s.eventually(name, func() error {
				if !at(s) {
					return errors.New("not yet")
				}
				return nil
			})
			agent.kill()
			s.start()
			s.poolOf(4)
			s.add("c")
			s.reach(internet4, "a", "c")
			s.tickAfter()
			nics := s.account.Snapshot().Nodes["n"]
			if len(nics) != 2 || nics[1].ID != "eni-00000002" || nics[1].Index != 1 {
				t.Errorf("ENIs %+v, want the one that was begun, attached", nics)
			}
		})
	}
}

// An agent that has lost its memory with an ENI on the way finds it and gives it
// back.
func TestAnENIThatNobodyRemembersIsGivenBack(t *testing.T) {
	t.Parallel()
	slow := map[string]sim.Latency{sim.ActAttach: {Base: time.Second}}
	s := newSite(t, plan{name: "leak", limits: tiny, options: sim.Options{Latency: slow}})
	s.configure("pool.batch: 2")
	agent := s.start()
	s.poolOf(2)
	s.add("a", "b")
	s.eventually("an ENI is made", func() error {
		if made, attached := s.attached(); made != 2 || attached != 1 {
			return fmt.Errorf("%d ENIs, %d attached", made, attached)
		}
		return nil
	})
	agent.kill()
	s.must(os.Remove(s.state()))
	s.del("a", "b")
	agent = s.start()
	agent.says(`msg=delete eni=eni-00000002 reason="it was made for this node and is attached nowhere since \d+s"`)
	s.eventually("it is gone", func() error {
		if made, _ := s.attached(); made != 1 {
			return fmt.Errorf("%d ENIs", made)
		}
		return nil
	})
}

// Who ends the agent while it makes an ENI gets an exit code of 0, and the next
// agent that ENI.
func TestStoppedWhileItMakesAnENITheAgentLeavesNothingUndone(t *testing.T) {
	t.Parallel()
	slow := map[string]sim.Latency{sim.ActCreate: {Base: 400 * time.Millisecond}, sim.ActAttach: {Base: 400 * time.Millisecond}}
	s := newSite(t, plan{name: "stop", limits: tiny, options: sim.Options{Latency: slow}})
	s.configure("pool.batch: 2")
	agent := s.start()
	s.poolOf(2)
	s.add("a", "b")
	s.eventually("an ENI is asked for", func() error {
		if s.account.Calls()[sim.ActCreate] == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	agent.terminate()
	if c, err := s.count(); err != nil || c.Total != 4 {
		t.Errorf("%+v, %v; want what the call brought in the cache", c, err)
	}
	s.add("c")
	s.reach(internet4, "a", "c")
}

// Killed while it gives an ENI back, the agent leaves it to the next one to finish,
// and pods of later on are not put on what goes.
func TestKilledWhileItDeletesAnENITheNextAgentEndsIt(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(s *site) bool{
		"asked": func(s *site) bool { return s.account.Calls()[sim.ActDetach] > 0 },
		"done":  func(s *site) bool { made, _ := s.attached(); return made == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := map[string]sim.Latency{sim.ActDetach: {Base: 400 * time.Millisecond}}
			s := newSite(t, plan{name: "delete-" + name, limits: tiny, options: sim.Options{Latency: slow}})
			s.configure("pool.batch: 2")
			agent := s.start()
			s.poolOf(2)
			s.add("a", "b", "c") // c is on ENI 1
			s.poolOf(4)
			s.reach(internet4, "c")
			s.del("b", "c")
			s.eventually(name, func() error {
				if !at(s) {
					return errors.New("not yet")
				}
				return nil
			})
			agent.kill()
			s.add("b")
			s.start()
			s.must(s.addAll([]string{"c", "d"}, 10*time.Second))
			s.reach(internet4, "a", "b", "c", "d")
			s.eventually("the cloud has what the cache has", func() error {
				cached, err := s.view()
				if made, _ := s.attached(); err == nil && made != len(cached.ENIs) {
					err = fmt.Errorf("%d ENIs in the cloud, the cache has %v", made, cached.ENIs)
				}
				return err
			})
		})
	}
}
