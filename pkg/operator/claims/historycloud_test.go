package claims_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
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
	errCross = errors.New("addresses of other subnets are not put on ENIs")
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
	for _, at := range c.bring {
		own := w.subnetOfENI(c.eni)
		switch in := subnetOfAddr(at); {
		case in == own:
		case in != subnetOfAddr(c.bring[0]), w.nodes[c.node].zone != "zone-"+in, !w.cross:
			w.complain("%v are to be on %s in %s", c.bring, c.eni, own)
		case w.uncrossed: // for a while the account is not on the list
			w.note("cross refused", "%s to %s", at, c.eni)
			return errCross
		default:
			w.note("crossed", "%s to %s", at, c.eni)
		}
	}
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

// subnetOfENI returns where an ENI lies.
func (w *world) subnetOfENI(id string) string {
	for _, n := range w.nodes {
		for _, is := range n.nics {
			if is.id == id {
				return is.subnet
			}
		}
	}
	return ""
}

// subnetOfAddr returns the subnet that an address of a topology lies in.
func subnetOfAddr(at netip.Addr) string { return []string{"a", "b"}[at.As4()[2]] }

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

func subnetOf(zone string) string { return strings.TrimPrefix(zone, "zone-") }

// subnets are as the operator has them: both are the nodes' too, and the topologies' ranges in them are reserved in the cloud.
func subnets() (list []topology.Subnet) {
	for i, id := range []string{"a", "b"} {
		net := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 0}), 24)
		list = append(list, topology.Subnet{ID: id, Zone: "zone-" + id, V4: net, Ready: true, Reserved: []netip.Prefix{netip.PrefixFrom(net.Addr(), 26)}, KeptFirst: 4, KeptLast: 1})
	}
	return list
}

// asENI returns an ENI as a node's status has it.
func (is nic) asENI() order.ENI {
	third := map[string]byte{"a": 0, "b": 1, "p": 2, "q": 3}[is.subnet]
	v4 := eni.Net{Primary: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, third, byte(200 + is.index)}), 24), Gateway: netip.AddrFrom4([4]byte{10, 0, third, 1})}
	return order.ENI{ID: is.id, Index: is.index, Subnet: is.subnet, State: order.Attached, Token: is.token, V4: v4}
}
