package operator

import (
	"cmp"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Ended is a call that has ended: what an operator has done for a node.
type Ended struct {
	At        time.Time `json:"at"`
	Node      string    `json:"node"`
	What      string    `json:"what"`                // create, assign, move, release or delete
	Object    string    `json:"object,omitempty"`    // the ENI
	Subnet    string    `json:"subnet,omitempty"`    // that it lies in
	From      string    `json:"from,omitempty"`      // the ENI that had what was moved
	Addresses int       `json:"addresses,omitempty"` // that came; below zero, that went
	Error     string    `json:"error,omitempty"`
}

// mostCalls is how many ended calls a term remembers.
const mostCalls = 30

// noteCall remembers a call that has ended.
func (t *term) noteCall(e Ended) {
	t.calls = append(t.calls, e)
	if more := len(t.calls) - mostCalls; more > 0 {
		t.calls = append(t.calls[:0], t.calls[more:]...)
	}
}

// endedCall tells people of a job and what came of it.
func endedCall(node string, j *job, out outcome, limits eni.Limits, when time.Time) Ended {
	e := Ended{At: when.Truncate(time.Second), Node: node, What: j.Do.String(), Object: cmp.Or(j.ENI, out.nic.ID), Subnet: j.Subnet}
	if j.from.ENI != "" {
		e.What, e.From = "move", j.from.ENI
	}
	// An outcome that is not known is told as an error: what may have come is no number for people.
	if e.Addresses = j.brings(out, limits); out.err != nil {
		e.Addresses, e.Error = len(out.addrs), out.err.Error()
	}
	return e
}
