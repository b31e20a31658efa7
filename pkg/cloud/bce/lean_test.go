package bce

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// asked returns how often the API was asked for each thing since a time.
func (s *site) asked(since map[string]int) map[string]int {
	n := s.Calls()
	for action, before := range since {
		n[action] -= before
	}
	maps.DeleteFunc(n, func(_ string, count int) bool { return count == 0 })
	return n
}

// later is a clock that can be put forward.
type later struct{ by atomic.Int64 }

func (a *later) Now() time.Time { return time.Now().Add(time.Duration(a.by.Load())) }

func (a *later) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func TestALookAsksForOneListAfterTheFirst(t *testing.T) {
	clock := &later{}
	s, c, _ := big(t, engine.Options{Clock: clock})
	look := func(want int, when string) {
		t.Helper()
		before := maps.Clone(s.Calls())
		_, err := c.Interfaces(t.Context())
		must(t, err)
		if got := s.asked(before)["ListEni"]; got != want {
			t.Errorf("%s: %d lists, want %d", when, got, want)
		}
	}
	look(2, "the first time")
	look(1, "the second time")
	i, err := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "sbn-a", V4: 1})
	must(t, err)
	look(1, "with an ENI of ours")
	must(t, s.Detach(i.ID))
	look(2, "when it was detached behind our back")
	look(2, "as long as it is attached nowhere")
	must(t, c.DeleteInterface(t.Context(), i.ID))
	look(1, "when it is deleted")
	s.Endpoint.FailNext("CreateEni", sim.Fault{Answer: sim.Lost})
	request := cloud.Create{Token: "u", Subnet: "sbn-a", V4: 1}
	if _, err := c.CreateInterface(t.Context(), request); err == nil {
		t.Fatal("a lost answer is no error")
	}
	look(2, "after a creation of unknown outcome")
	before := maps.Clone(s.Calls())
	_, err = c.CreateInterface(t.Context(), request)
	must(t, err)
	if got := s.asked(before); got["CreateEni"] != 0 || got["ListEni"] == 0 {
		t.Errorf("the same creation again: %v", got)
	}
	look(2, "as long as something may come late")
	clock.by.Add(int64(3 * time.Minute))
	look(2, "when it must have come")
	look(1, "after that")
	clock.by.Add(int64(121 * time.Minute))
	look(2, "when it is due")
}

func TestANewENIOfAnInstanceThatIsKnownTakesNoList(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	_, err := c.Limits(t.Context()) // as an agent does first
	must(t, err)
	_, err = c.Interfaces(t.Context())
	must(t, err)
	var indexes []int
	for _, token := range []string{"a", "b", "c"} {
		before := maps.Clone(s.Calls())
		i, err := c.CreateInterface(t.Context(), cloud.Create{Token: token, Subnet: "sbn-a", V4: 2})
		must(t, err)
		indexes = append(indexes, i.Index)
		got := s.asked(before)
		for _, action := range []string{"ListEni", "GetInstanceDetail"} {
			if got[action] != 0 {
				t.Errorf("ENI %s: calls %v", token, got)
			}
		}
	}
	if !slices.Equal(indexes, []int{1, 2, 3}) {
		t.Errorf("device indexes %v", indexes)
	}
	s.Endpoint.FailNext("CreateEni", sim.Fault{Err: &sim.Error{Reason: sim.Throttled}})
	before := maps.Clone(s.Calls())
	request := cloud.Create{Token: "d", Subnet: "sbn-a", V4: 2}
	if _, err := c.CreateInterface(t.Context(), request); !errors.Is(err, cloud.ErrThrottled) {
		t.Fatal(err)
	}
	_, err = c.CreateInterface(t.Context(), request)
	if got := s.asked(before); err != nil || got["ListEni"] != 0 {
		t.Errorf("after one that was throttled: %v, %v", got, err)
	}
	before = maps.Clone(s.Calls())
	_, err = c.CreateInterface(t.Context(), cloud.Create{Token: "a", Subnet: "sbn-a", V4: 2})
	if got := s.asked(before); err != nil || got["CreateEni"] != 0 || got["ListEni"] == 0 {
		t.Errorf("the first token again: %v, %v", got, err)
	}
}

// An ENI that describes don't show yet when a process begins is found by its clientToken.
func TestACreationAfterARestartThatSawNothingMakesNoSecondENI(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	request := cloud.Create{Token: "t", Subnet: "sbn-a", V4: 2}
	next, _ := s.open(t, "i-n1", engine.Options{Subnets: []string{"sbn-a", "sbn-b"}})
	_, err := next.Interfaces(t.Context())
	must(t, err)
	first, err := c.CreateInterface(t.Context(), request)
	must(t, err)
	again, err := next.CreateInterface(t.Context(), request)
	if err != nil || again.ID != first.ID {
		t.Errorf("the next process made %+v, %v; want %s", again, err, first.ID)
	}
	must(t, s.Check())
}

func TestAThrottledReadIsMadeAgainAsLongAsThereIsTime(t *testing.T) {
	s, c, _ := big(t, engine.Options{})
	throttled := sim.Fault{Err: &sim.Error{Reason: sim.Throttled}}
	s.Endpoint.FailNext("ListEni", slices.Repeat([]sim.Fault{throttled}, readTries-1)...)
	if _, err := c.Interfaces(t.Context()); err != nil {
		t.Errorf("%v after %d lists", err, s.Calls()["ListEni"])
	}
	before := maps.Clone(s.Calls())
	s.Endpoint.FailNext("ListEni", slices.Repeat([]sim.Fault{throttled}, readTries)...)
	_, err := c.Interfaces(t.Context())
	if got := s.asked(before)["ListEni"]; !errors.Is(err, cloud.ErrThrottled) || got != readTries {
		t.Errorf("%v after %d lists, want %d", err, got, readTries)
	}
	before = maps.Clone(s.Calls())
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	s.Endpoint.FailNext("ListEni", sim.Fault{Err: &sim.Error{Reason: sim.Throttled, RetryAfter: 2 * time.Hour}})
	_, err = c.Interfaces(ctx)
	if got := s.asked(before)["ListEni"]; !errors.Is(err, cloud.ErrThrottled) || got != 1 {
		t.Errorf("told to come back when there is no time left: %v after %d lists", err, got)
	}
}
