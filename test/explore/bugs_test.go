//go:build !race

package explore

// With the race detector a run has fewer faults than some of these need.

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// tokenless is a cloud that makes another ENI when a create is repeated with its token.
type tokenless struct{ driver.Driver }

func (d tokenless) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	c.Token = ""
	return d.Driver.Create(ctx, c)
}

// markless is a driver that forgets to write the mark on new ENIs.
type markless struct{ driver.Driver }

func (d markless) Create(ctx context.Context, c driver.Create) (driver.Interface, error) {
	c.Mark = driver.Mark{}
	return d.Driver.Create(ctx, c)
}

// trusting is a driver that takes a delete without an answer for one that was done.
type trusting struct{ driver.Driver }

func (d trusting) Delete(ctx context.Context, id, token string) error {
	if err := d.Driver.Delete(ctx, id, token); !errors.Is(err, cloud.ErrUnknown) {
		return err
	}
	return nil
}

// early gives addresses back to the pool before the cloud has answered that they stay.
type early struct {
	cloud.Cloud
	w *world
}

func (c early) UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error {
	next := c.w.cache.Clone()
	next.CancelRelease(addrs, c.w.sinceBoot())
	c.w.cache = next
	return c.Cloud.UnassignAddresses(ctx, id, addrs)
}

// without is a Store that loses a part of the agent's memory.
type without struct {
	agent.Store
	parts []string
}

func (s without) Save(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, part := range s.parts {
		delete(all, part)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return s.Store.Save(text)
}

// bugs are mistakes that were made once, or could be.
var bugs = []struct {
	name string
	says string // what is found
	put  func(*scenario)
}{
	{"a create that is repeated makes a second ENI", "are of one intent", func(s *scenario) {
		s.wrapDriver = func(_ *world, d driver.Driver) driver.Driver { return tokenless{d} }
	}},
	{"new ENIs have no mark", "is leaked", func(s *scenario) {
		s.wrapDriver = func(_ *world, d driver.Driver) driver.Driver { return markless{d} }
	}},
	{"a deletion without an answer counts as done", "is leaked", func(s *scenario) {
		s.wrapDriver = func(_ *world, d driver.Driver) driver.Driver { return trusting{d} }
	}},
	{"addresses are free before the cloud has answered", "is free on ENI", func(s *scenario) {
		s.wrapCloud = func(w *world, c cloud.Cloud) cloud.Cloud { return early{c, w} }
	}},
	{"the intent is not saved before the ENI is made", "2 ENIs were made", func(s *scenario) {
		s.wrapStore = func(f agent.Store) agent.Store { return without{f, []string{"creates"}} }
	}},
	{"what was unassigned lately is not saved", "is free on ENI", func(s *scenario) {
		s.wrapStore = func(f agent.Store) agent.Store { return without{f, []string{"notes", "gone", "goneENIs"}} }
	}},
}

func TestBugsThatWerePutInAreFound(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			s := &search{scenario: scenario{traits: sim.LikeEC2()}, bound: bound{fewFaults, fewSteps}}
			b.put(&s.scenario)
			v := s.run()
			if v == nil {
				t.Fatalf("not found: %s", s)
			}
			if !strings.Contains(v.Error(), b.says) {
				t.Errorf("found something else: %v", v)
			}
			t.Log(s.story(v))
			t.Log(s)
		})
	}
}
