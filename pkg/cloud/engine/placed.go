package engine

import (
	"fmt"
	"net/netip"
	"time"
)

// placed is where recent calls have put things: which ENI at each device index, and each address on
// which ENI, by their IDs. That a call succeeded is better evidence than an answer that lags, such
// as one that still shows an ENI whose deletion an earlier process began.
type placed struct {
	index map[int]string
	addrs map[netip.Addr]string
}

// lastPlaced returns what calls have put where after a describe was requested, or so shortly before
// that it may not show it yet.
func (n *Node) lastPlaced(asked time.Time) placed {
	last, when, since := placed{map[int]string{}, map[netip.Addr]string{}}, map[netip.Addr]time.Time{}, map[int]time.Time{}
	counts := func(at time.Time) bool { return !at.Add(n.t.Times.Settle).Before(asked) }
	puts := func(a netip.Addr, id string, at time.Time) {
		if a.IsValid() && counts(at) && at.After(when[a]) {
			last.addrs[a], when[a] = id, at
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	// An address can have moved between ENIs within the window: the latest call counts.
	for id, list := range n.memory.deeds {
		for a, d := range list {
			puts(a, id, d.assignedAt)
		}
	}
	for id, made := range n.memory.ready {
		if counts(made.at) && made.at.After(since[made.Index]) {
			last.index[made.Index], since[made.Index] = id, made.at
		}
		puts(made.V4.Primary.Addr(), id, made.at)
		puts(made.V6.Primary.Addr(), id, made.at)
	}
	return last
}

// shownBy returns the part that a describe shows too. An ENI or address that it does not show may be
// gone again, and must not displace what it shows.
func (p placed) shownBy(nics []nic) placed {
	shown := placed{map[int]string{}, map[netip.Addr]string{}}
	for _, i := range nics {
		if p.index[i.Index] == i.ID {
			shown.index[i.Index] = i.ID
		}
		for _, a := range append([]netip.Addr{i.V4.Primary.Addr(), i.V6.Primary.Addr()}, i.Addresses...) {
			if p.addrs[a] == i.ID {
				shown.addrs[a] = i.ID
			}
		}
	}
	return shown
}

// addressesElsewhere returns the addresses of an ENI that calls have put on another one since.
func (p placed) addressesElsewhere(i nic) (addrs []netip.Addr) {
	for _, a := range i.Addresses {
		if id, is := p.addrs[a]; is && id != i.ID {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// whyNotHere tells why an ENI can't be where it is shown, "" if no call contradicts it.
func (p placed) whyNotHere(i nic) string {
	if i.raw.Primary {
		return "" // no view works without it
	}
	if id, is := p.index[i.Index]; is && id != i.ID {
		return fmt.Sprintf("a call has attached ENI %s at its device index %d since", id, i.Index)
	}
	for _, a := range []netip.Addr{i.V4.Primary.Addr(), i.V6.Primary.Addr()} {
		if id, is := p.addrs[a]; is && id != i.ID {
			return fmt.Sprintf("a call has put its primary address %s on ENI %s since", a, id)
		}
	}
	return ""
}

// keepUncontradicted returns the ENIs, with the addresses, that no call contradicts.
func (p placed) keepUncontradicted(nics []nic) (rest []nic) {
	p = p.shownBy(nics)
	for _, i := range nics {
		if p.whyNotHere(i) == "" {
			i.Addresses = minus(i.Addresses, p.addressesElsewhere(i))
			rest = append(rest, i)
		}
	}
	return rest
}
