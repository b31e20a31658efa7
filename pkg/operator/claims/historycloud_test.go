package claims_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
)

// place is where the cloud has an address: on an ENI or nowhere, and until a describe shows that for sure where it was before.
type place struct {
	eni, before string
	changed     time.Duration
}

func (w *world) move(at netip.Addr, to string) {
	w.cloud[at] = place{eni: to, before: w.cloud[at].eni, changed: w.now}
}

// call is one under way, or its answer.
type call struct {
	by    *leader
	node  int
	eni   string
	take  []netip.Prefix
	bring []netip.Addr
	nic   claims.Make
	token string
	sent  time.Duration

	done bool
	err  error
	made nic
}

var (
	errTaken = errors.New("another ENI has it")
	errLimit = errors.New("the ENI can't carry one more")
	errLost  = errors.New("there is no answer")
)

// takeEffect lets the cloud do a call. One that was sent too long ago it does not do: what takes addresses may come as late as a fence lets it, what brings them
// has its effect before its timeout and the answer, which may be lost.
func (w *world) takeEffect(c *call) {
	if c.done {
		return
	}
	late := validity
	if len(c.take) == 0 {
		late = callTimeout
	}
	if c.done = true; w.now >= c.sent+late {
		c.err = errLost
		return
	}
	n := w.nodes[c.node]
	if w.now >= c.sent+callTimeout {
		w.note("late effect", "%v %v %v", c.take, c.bring, c.nic)
	}
	switch {
	case len(c.take) > 0:
		for _, p := range c.take {
			if w.cloud[p.Addr()].eni == c.eni {
				w.note("unassigned", "%s from %s", p.Addr(), c.eni)
				w.move(p.Addr(), "")
			}
		}
	case len(c.bring) > 0:
		c.err = w.assign(c)
	default:
		at := slices.IndexFunc(n.nics, func(is nic) bool { return is.token == c.token })
		if at < 0 && len(n.nics) == mostENIs {
			c.err = errLimit
			return
		} else if at < 0 {
			at = len(n.nics)
			n.nics = append(n.nics, nic{id: fmt.Sprint(n.name, "/", at), subnet: c.nic.Subnet, token: c.token, index: at})
		}
		c.made = n.nics[at]
	}
}

// assign gives an ENI all that a call names, or nothing. What another ENI has it never takes: ranges are reserved.
func (w *world) assign(c *call) error {
	count := 0
	for _, is := range w.cloud {
		if is.eni == c.eni {
			count++
		}
	}
	for _, at := range c.bring {
		if on := w.cloud[at].eni; on != "" && on != c.eni {
			return errTaken
		}
	}
	if count+len(c.bring) >= perENI { // its primary address is one of them
		return errLimit
	}
	for _, at := range c.bring {
		if w.cloud[at].eni == "" {
			w.note("assigned", "%s to %s", at, c.eni)
			w.move(at, c.eni)
		}
	}
	return nil
}

// answer tells who has made a call what came of it, or that there is no answer. What has not taken effect by then may do so later.
func (w *world) answer(c *call, told bool) {
	timedOut := !c.done && w.now >= c.sent+callTimeout
	if !c.done && (!timedOut || c.by == nil) {
		return
	}
	err := c.err
	if timedOut || !told {
		err = errLost
		w.note("answer lost", "%v %v %v", c.take, c.bring, c.nic)
	}
	if c.by != nil && !c.by.dead {
		c.by.endCall(c, err)
	}
	c.by = nil
	if c.done {
		w.calls = slices.DeleteFunc(w.calls, func(o *call) bool { return o == c })
	}
}

// show returns what a describe shows of a node. What changed a moment ago may be shown as it was.
func (w *world) show(n *node) order.Description {
	d := order.Description{Began: w.moment(), Shown: map[string][]netip.Prefix{}}
	for _, is := range n.nics {
		d.Shown[is.id] = nil
	}
	for _, at := range slices.SortedFunc(maps.Keys(w.cloud), netip.Addr.Compare) {
		is := w.cloud[at]
		on := is.eni
		if w.now < is.changed+lease.Settle && w.IntN(2) == 0 {
			on = is.before
		}
		if _, here := d.Shown[on]; here {
			d.Shown[on] = append(d.Shown[on], netip.PrefixFrom(at, at.BitLen()))
		}
	}
	return d
}

func (w *world) moment() order.Moment { return order.Moment{Mono: w.now, Wall: w.wall()} }
