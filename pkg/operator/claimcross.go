package operator

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/topology"
)

// Where the cloud carries addresses across subnets, a pod of a topology has its address on any ENI of its node with room. Baidu does so for accounts on a
// white list. No request tells which those are, nor whether there is a limit of its own: what is refused is done as without it for a while, by an ENI in
// the subnet.

// noCross is why addresses of other subnets are not put on ENIs.
type noCross struct {
	until time.Duration
	why   string
}

// noCrossFor is for how long.
const noCrossFor = 2 * topology.ConflictRetry

// isUncrossed tells whether a call was refused that was to put addresses of another subnet on an ENI, and not because one of them is taken.
func (j *job) isUncrossed(err error) bool {
	return j.cross && (errors.Is(err, cloud.ErrForbidden) || errors.Is(err, cloud.ErrLimit))
}

// noteNoCross takes in that the cloud has refused to put addresses of another subnet on an ENI: for want of a right on any ENI, by a limit on this node.
func (t *term) noteNoCross(j *job, err error, now time.Duration) {
	t.o.Log.Warn("the cloud does not put addresses of other subnets on ENIs; pods of topologies get ENIs in their subnets, and it is tried again in a while",
		"node", j.Node, "eni", j.ENI, "subnet", j.Subnet, "addresses", j.bring, "error", err)
	of := ""
	if errors.Is(err, cloud.ErrLimit) {
		of = j.Node
	}
	t.claiming.noCross[of] = noCross{now + noCrossFor, "addresses of other subnets are not put on its ENIs for now: " + Shorten(err.Error())}
	t.dirtyFor(of)
}

// endNoCross has it tried again.
func (t *term) endNoCross(now time.Duration) {
	c := t.claiming
	for of, is := range c.noCross {
		if now >= is.until {
			delete(c.noCross, of)
			t.dirtyFor(of)
		} else {
			c.next = min(c.next, is.until)
		}
	}
}

// dirtyFor has a node looked at again, of "" all.
func (t *term) dirtyFor(of string) {
	if of != "" {
		t.dirty[of] = true
		return
	}
	for name := range t.members {
		t.dirty[name] = true
	}
}

// whyNoCross returns why ENIs of a node carry no addresses of other subnets now, though the cloud could; "" if they do, or if it can't.
func (t *term) whyNoCross(m *member, now time.Duration) string {
	if t.claiming == nil || m.network == nil {
		return ""
	}
	for _, of := range []string{"", m.network.Name} {
		if is := t.claiming.noCross[of]; now < is.until {
			return is.why
		}
	}
	return ""
}

// takenFrom returns those of the addresses that go back to one subnet, as inOneSubnet.
func (t *term) takenFrom(own string, list []netip.Prefix) (some []netip.Prefix, subnet string) {
	var first []netip.Addr
	for _, p := range list {
		first = append(first, p.Addr())
	}
	first, subnet = t.inOneSubnet(own, first)
	return slices.DeleteFunc(slices.Clone(list), func(p netip.Prefix) bool { return !slices.Contains(first, p.Addr()) }), subnet
}

// lies returns what tells the subnet of an address, nil where an ENI has addresses of its own alone.
func (t *term) lies() func(netip.Addr) string {
	if t.claiming == nil || !t.o.Region.Does().CrossSubnet {
		return nil
	}
	return t.claiming.known.SubnetOf
}

// inOneSubnet returns those of the addresses that are of one subnet, and which that is: the ENI's own first. A call is about one.
func (t *term) inOneSubnet(own string, addrs []netip.Addr) (list []netip.Addr, subnet string) {
	of := func(a netip.Addr) string {
		if id := t.claiming.known.SubnetOf(a); id != "" {
			return id
		}
		return own
	}
	subnet = own
	if !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return of(a) == own }) {
		subnet = of(addrs[0])
	}
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return of(a) != subnet }), subnet
}
