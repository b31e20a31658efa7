package operator

import (
	"time"

	"github.com/enipool/enipool/pkg/timeline"
)

// dues says when nodes are to be looked at next: who is due is found without going through all of them.
type dues struct {
	at    map[string]time.Duration
	queue timeline.Queue[string] // of what was set; what was set again since is in it too, and is passed over
}

func newDues() *dues { return &dues{at: map[string]time.Duration{}} }

// set says when a node is due, 0 for never.
func (d *dues) set(name string, at time.Duration) {
	switch {
	case at <= 0:
		delete(d.at, name)
	case d.at[name] != at:
		d.at[name] = at
		d.queue.Add(at, name)
	}
}

// next returns which node is due first, and when, and whether there is one.
func (d *dues) next() (at time.Duration, name string, is bool) {
	for at, name, is = d.queue.First(); is && d.at[name] != at; at, name, is = d.queue.First() {
		d.queue.DropFirst()
	}
	return at, name, is
}

// take takes out the nodes that are due.
func (d *dues) take(now time.Duration) (names []string) {
	for {
		at, name, is := d.next()
		if !is || at > now {
			return names
		}
		d.queue.DropFirst()
		delete(d.at, name)
		names = append(names, name)
	}
}
