package engine

import (
	"fmt"
	"net/netip"
	"time"
)

// placed is which ENI calls have put at each device index, and on which one each address. That
// they succeeded is better evidence than an answer that lags: of an ENI, say, whose deletion
// an earlier process began.
type placed struct {
	index map[int]string
	addrs map[netip.Addr]string
}

// lastPlaced returns what calls have put where since describes were asked for, or so shortly
// before that those may not show it yet.
func (n *Node) lastPlaced(asked time.Time) placed {
	p, when, since := placed{map[int]string{}, map[netip.Addr]string{}}, map[netip.Addr]time.Time{}, map[int]time.Time{}
	counts := func(at time.Time) bool { return !at.Add(n.t.Times.Settle).Before(asked) }
	puts := func(a netip.Addr, id string, at time.Time) {
		if a.IsValid() && counts(at) && at.After(when[a]) {
			p.addrs[a], when[a] = id, at
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, list := range n.memory.deeds {
		for a, d := range list {
			puts(a, id, d.put)
		}
	}
	for id, made := range n.memory.ready {
		if counts(made.at) && made.at.After(since[made.Index]) {
			p.index[made.Index], since[made.Index] = id, made.at
		}
		puts(made.V4.Primary.Addr(), id, made.at)
		puts(made.V6.Primary.Addr(), id, made.at)
	}
	return p
}

// among returns that of it which the ENIs show: what does not show is in nobody's way.
func (p placed) among(nics []nic) placed {
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

// elsewhere returns the addresses of an ENI that calls have put on another one since.
func (p placed) elsewhere(i nic) (addrs []netip.Addr) {
	for _, a := range i.Addresses {
		if id, is := p.addrs[a]; is && id != i.ID {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// against tells why an ENI can't be where it is shown any more, "" if nothing says so.
func (p placed) against(i nic) string {
	if i.raw.Primary {
		return "" // without it there is nothing to go by
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

// stand returns the ENIs and addresses that nothing speaks against.
func (p placed) stand(nics []nic) (rest []nic) {
	p = p.among(nics)
	for _, i := range nics {
		if p.against(i) == "" {
			i.Addresses = minus(i.Addresses, p.elsewhere(i))
			rest = append(rest, i)
		}
	}
	return rest
}
