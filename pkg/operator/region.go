package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
)

// noteLimits keeps when the first of the calls under way has to have ended.
func (t *term) noteLimits() {
	var first time.Time
	for j := range t.running {
		if at := t.lead.Acquired.Add(j.began + j.limit()); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	t.mu.Lock()
	t.oldest = first
	t.mu.Unlock()
}

// together is how long a describe waits for other nodes that need one.
const together = time.Second

// describe begins a describe if one is due, and returns how long until then. Nodes that need one are described together.
func (t *term) describe(now time.Duration) time.Duration {
	if t.looks.under {
		return patience // its end wakes the loop
	}
	due := t.looks.all
	var some []string
	for name, node := range t.members {
		if node.client == nil || !node.isKnown() {
			continue
		}
		if at, is := node.describeDue(node.view, t.now()); is {
			if due = min(due, at+together); at <= now {
				some = append(some, name)
			}
		}
	}
	if due = max(due, t.looks.pause); due > now {
		return due - now
	}
	t.look(some, now >= t.looks.all)
	return patience
}

// seen is what a describe has brought.
type seen struct {
	began  order.Moment
	views  map[string]cloud.View // by instance
	limits map[string]eni.Limits // by node
	places []cloud.Place
	all    bool
	err    error
}

// look describes nodes, or everything, beside the loop.
func (t *term) look(names []string, all bool) {
	t.looks.under = true
	members := map[string]*member{}
	unlimited := map[string]*member{}
	for name, node := range t.members {
		if node.client == nil || node.left || !all && !slices.Contains(names, name) {
			continue
		}
		if members[name] = node; node.limits == (eni.Limits{}) {
			unlimited[name] = node
		}
	}
	for name, guest := range t.guests {
		if !all {
			break
		}
		if members[name] = guest; guest.limits == (eni.Limits{}) {
			unlimited[name] = guest
		}
	}
	clients, types, instances := map[string]cloud.Cloud{}, map[string]string{}, []string{}
	for name, node := range members {
		instances = append(instances, node.node.Instance)
		if unlimited[name] != nil {
			clients[name], types[name] = node.client, node.node.Type
		}
	}
	began := t.now() // before the first request: what a call does meanwhile the describe may lack
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, longJob)
		defer cancel()
		s := t.ask(ctx, instances, clients, types, all)
		s.began = began
		t.post(func(t *term) { t.looked(s, members) })
	})
}

// ask makes the describes. What an instance can carry comes after its ENIs: those that are left out take room.
func (o *Operator) ask(ctx context.Context, instances []string, clients map[string]cloud.Cloud, types map[string]string, all bool) (s seen) {
	s = seen{all: all, limits: map[string]eni.Limits{}}
	if len(instances) > 0 {
		if s.views, s.err = o.o.Region.Look(ctx, instances); s.err != nil {
			return s
		}
	}
	// Of all types in a few requests where the cloud tells that, else instance by instance.
	byType := map[string]eni.Limits{}
	if o.o.Region.Does().Types {
		names := slices.Sorted(maps.Values(types))
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		if byType, s.err = o.o.Region.Limits(ctx, names); s.err != nil {
			return s
		}
	}
	for name, client := range clients {
		l, known := byType[types[name]]
		if !known {
			var err error
			if l, err = client.Limits(ctx); err != nil {
				s.err = cmp.Or(s.err, err)
				continue
			}
		}
		s.limits[name] = l
	}
	if all {
		var err error
		if s.places, err = o.o.Region.Subnets(ctx); err != nil {
			s.err = cmp.Or(s.err, err)
			s.all = false
		}
	}
	return s
}

// looked takes in what a describe has brought.
func (t *term) looked(s seen, members map[string]*member) {
	now := t.now()
	t.looks.under = false
	for name, node := range members {
		if l, known := s.limits[name]; known {
			node.limits = l
		}
		view, is := s.views[node.node.Instance]
		if t.guests[name] == node && is {
			node.shown = &shown{s.began, view}
		}
		if t.members[name] == node && node.isKnown() && is {
			node.noteDescribe(&shown{s.began, view}, node.view.Status)
			t.dirty[name] = true
		}
	}
	if s.err != nil {
		t.lookFailed(s.err, now.Mono)
		return
	}
	t.looks.misses, t.looks.pause = 0, 0
	if t.looks.failed != nil {
		t.looks.failed = nil
		t.dirtyAll()
	}
	if s.all {
		t.looks.all, t.looks.shown = s.began.Mono+t.o.Describe, s.began.Wall
		t.o.Meter.Described(now.Mono - s.began.Mono)
		t.takePlaces(s)
		t.dirtyAll()
	}
}

// lookFailed takes in that a describe failed: from the second time on the nodes are told.
func (t *term) lookFailed(err error, now time.Duration) {
	t.looks.misses++
	t.looks.pause = now + min(time.Minute, time.Second<<min(t.looks.misses, 6))
	t.o.Log.Warn("a describe failed", "error", err)
	if errors.Is(err, cloud.ErrThrottled) {
		t.o.Gate.noteThrottled(t.action("Page", -1), retryAfter(err))
	}
	why := causeOf(err)
	why.Words = fmt.Sprint("describes fail: ", err)
	if t.looks.misses >= 2 && (t.looks.failed == nil || t.looks.failed.Kind != why.Kind) {
		t.looks.failed = &why
		t.dirtyAll()
	}
}

func (t *term) dirtyAll() {
	for name := range t.members {
		t.dirty[name] = true
	}
}
