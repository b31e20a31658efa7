package operator

import (
	"container/heap"
	"time"
)

// dues says when nodes are to be looked at next: who is due is found without going through all of them.
type dues struct {
	at    map[string]time.Duration
	queue dueQueue // of what was set; what was set again since is in it too, and is passed over
}

// due is one entry.
type due struct {
	name string
	at   time.Duration
}

func newDues() *dues { return &dues{at: map[string]time.Duration{}} }

// set says when a node is due, 0 for never.
func (d *dues) set(name string, at time.Duration) {
	switch {
	case at <= 0:
		delete(d.at, name)
	case d.at[name] != at:
		d.at[name] = at
		heap.Push(&d.queue, due{name, at})
	}
}

// next returns when the first node is due, and whether there is one.
func (d *dues) next() (at time.Duration, is bool) {
	for len(d.queue) > 0 {
		if first := d.queue[0]; d.at[first.name] == first.at {
			return first.at, true
		}
		heap.Pop(&d.queue)
	}
	return 0, false
}

// take takes out the nodes that are due.
func (d *dues) take(now time.Duration) (names []string) {
	for {
		at, is := d.next()
		if !is || at > now {
			return names
		}
		name := heap.Pop(&d.queue).(due).name
		delete(d.at, name)
		names = append(names, name)
	}
}

// dueQueue is a heap of entries, the first due on top.
type dueQueue []due

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, k int) bool { return q[i].at < q[k].at }
func (q dueQueue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }

// Push implements heap.Interface.
func (q *dueQueue) Push(x any) { *q = append(*q, x.(due)) }

// Pop implements heap.Interface.
func (q *dueQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
