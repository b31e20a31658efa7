package agent

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// belief is what describes and the agent's own calls together say of the cloud. What the cache has to
// learn follows from it alone: see facts.go.
type belief struct {
	view    *view
	doubts  doubts
	notes   cloud.Notes // what own calls took away
	mem     *memory     // what they may still do
	settle  time.Duration
	first   int                  // lowest device index of an ENI with addresses for pods
	refused func(id string) bool // the cache has refused the ENI lately
}

// belief returns what is believed now.
func (a *Agent) belief(now time.Duration) belief {
	return belief{view: &a.view, doubts: a.doubts, notes: a.Cloud.Notes(), mem: &a.mem, settle: a.conf.Settle, first: a.firstIndex(),
		refused: func(id string) bool { return a.backoffs.active(adoptionOf(id), now) }}
}

// doubts are what was not found where it should be. One look is not enough to act on: the cloud may
// show what was before a call, and a DEL may be on its way.
type doubts struct {
	suspects since[netip.Addr] // in the cache and not in the cloud
	strays   since[string]     // ENIs of the cache that are not in the cloud
	leaks    since[string]     // unattached ENIs of ours
	dead     since[eni.Owner]  // owners whose sandboxes are gone
	barren   since[string]     // intents, by token, that the cloud is unavailable for: none of their calls has come to anything

	// unheard are ENIs whose deletion an earlier agent began, since when this one runs, or whose last
	// deletion came to an unknown end, until when it may have its effect: the cloud may have heard of it.
	unheard since[string]
	// given are the same of releases.
	given since[netip.Addr]
}

func noDoubts() doubts {
	return doubts{suspects: since[netip.Addr]{}, strays: since[string]{}, leaks: since[string]{}, dead: since[eni.Owner]{},
		barren: since[string]{}, unheard: since[string]{}, given: since[netip.Addr]{}}
}

// since is when something that is not as it should be was found so first, in all looks from then on.
type since[K comparable] map[K]time.Duration

// of returns since when, which is now for what was not found before.
func (s since[K]) of(k K, now time.Duration) time.Duration {
	if t, ok := s[k]; ok {
		return t
	}
	return now
}

// has tells whether it was found.
func (s since[K]) has(k K) bool {
	_, has := s[k]
	return has
}

// still returns what a look has found: what it did not find is as it should be again.
func (s since[K]) still(found iter.Seq[K], now time.Duration) since[K] {
	next := since[K]{}
	for k := range found {
		next[k] = s.of(k, now)
	}
	return next
}

// sighted takes in what a describe shows of the cache. It is done once a describe.
func (d doubts) sighted(v *view, cached *ipam.State) doubts {
	d.suspects = d.suspects.still(misplaced(v, cached), v.start)
	d.strays = d.strays.still(unshown(v, cached), v.start)
	return d
}

// misplaced are the cache's addresses that are not where they should be.
func misplaced(v *view, cached *ipam.State) iter.Seq[netip.Addr] {
	at, id := v.places(), ids(cached)
	return func(yield func(netip.Addr) bool) {
		for i := range cached.Addresses {
			if line := &cached.Addresses[i]; at[line.Addr] != id[line.ENI] && !yield(line.Addr) {
				return
			}
		}
	}
}

// unshown are the cache's ENIs that are not attached.
func unshown(v *view, cached *ipam.State) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, nic := range cached.ENIs {
			if have, ok := v.eni(nic.ID); (!ok || have.Index < 0) && !yield(nic.ID) {
				return
			}
		}
	}
}

// leaked are ENIs of ours that are attached nowhere and are not being made.
func (v *view) leaked(m *memory) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, nic := range v.enis {
			if nic.Index < 0 && nic.Ours && !m.making(nic.Token) && !yield(nic.ID) {
				return
			}
		}
	}
}

// renewed returns the view with what the Cloud knows of the ENIs: calls have returned since the describe
// was answered, whose results may have come before it or still are on their way here. What a
// call under way has done so far comes with its result, for until then all that it asks for is counted.
func (v view) renewed(known []cloud.Interface, underWay func(id string) bool) view {
	known = slices.Clone(known)
	for i, nic := range known {
		if before, had := v.eni(nic.ID); had && underWay(nic.ID) {
			known[i] = before
		}
	}
	v.enis, v.at, v.agrees = known, nil, false
	return v
}
