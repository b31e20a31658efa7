package kube

import (
	"strings"
	"time"
)

const (
	// seldomest is how far apart the writes of what another writer undoes each time become.
	seldomest = 5 * time.Minute
	// undoings is how often in a row the same was undone when people are told, and it is written more seldom.
	undoings = 10
)

// insistence is what was written last, and how often it was written because it did not stay: another
// writer, or a webhook that drops what it does not know, wants it otherwise.
type insistence struct {
	what  string
	times int
	at    time.Time
}

// wait returns for how long the same is not written again, 0 or less for none.
func (i *insistence) wait(p patches, now time.Time) time.Duration {
	if p.text() != i.what || i.times <= undoings || p.status.Status.Capacity != nil {
		return 0 // a kubelet that restarts turns pods away where the resource is missing
	}
	return i.at.Add(min(pace<<min(i.times-undoings, 10), seldomest)).Sub(now)
}

// wrote takes in a write, and returns how often in a row it was undone if that is to be told.
func (i *insistence) wrote(p patches, now time.Time) (times int, tell bool) {
	if p.text() != i.what || now.Sub(i.at) > 2*seldomest {
		*i = insistence{what: p.text()}
	}
	i.times, i.at = i.times+1, now
	return i.times - 1, i.times-1 == undoings
}

// patches are what of the node is to change.
type patches struct {
	status statusPatch
	taint  []operation
}

func (p patches) empty() bool { return p.status.empty() && p.taint == nil }

// partsOf tells people what is to change.
func partsOf(p patches) string {
	var names []string
	for _, part := range []struct {
		name string
		is   bool
	}{{"condition", p.status.Status.Conditions != nil}, {"resource", p.status.Status.Capacity != nil || p.status.noResource}, {"taint", p.taint != nil}} {
		if part.is {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, ", ")
}

// text tells one change from another, whenever they are made.
func (p patches) text() string {
	parts := []string{partsOf(p)}
	for _, c := range p.status.Status.Conditions {
		parts = append(parts, string(c.Status), c.Reason, c.Message)
	}
	if q, is := p.status.Status.Capacity[Resource]; is {
		parts = append(parts, q.String())
	}
	if removesTaint(p.taint) {
		parts = append(parts, "removed")
	}
	if p.status.noResource {
		parts = append(parts, "no resource")
	}
	return strings.Join(parts, "\n")
}
