package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// facts are what the cache does not know yet: it has to follow the cloud.
type facts struct {
	enis    []eni.Interface      // attached, with their links, not in the cache
	addrs   map[int][]netip.Addr // by device index: on the ENI, not in the cache
	wider   []eni.Interface      // ENIs of the cache, as they need to be to have addrs
	suspect []netip.Addr         // in the cache; one describe did not show them
	lost    []netip.Addr         // in the cache; the cloud does not have them any more
	found   []netip.Addr         // lost in the cache; the cloud has them
	drop    []netip.Addr         // releasing in the cache and gone from the cloud
	dropENI []string             // in the cache and gone from the cloud, with nothing used
	replace []string             // in the cache and gone, and in the way of what is new
	waiting []string             // ENIs of the cloud whose link is not on the node
	refused bool                 // there is an ENI that the cache has refused lately
}

// places returns the ENI of each secondary address that is attached in the view. It
// is made once for each state of the view: every tick asks for it. What is an ENI's primary
// address is no other's: the ENI was made after somebody took it from there.
func (v *view) places() map[netip.Addr]string {
	if v.at != nil {
		return v.at
	}
	n := 0
	for _, nic := range v.enis {
		n += len(nic.Addresses)
	}
	at := make(map[netip.Addr]string, n)
	for _, nic := range v.enis {
		for _, addr := range nic.Addresses {
			if nic.Index >= 0 {
				at[addr] = nic.ID
			}
		}
	}
	for _, nic := range v.enis {
		if nic.Index >= 0 {
			delete(at, nic.V4.Primary.Addr())
			delete(at, nic.V6.Primary.Addr())
		}
	}
	v.at = at
	return at
}

// heads tells whether the address is the primary one of an attached ENI other than that.
func (v *view) heads(addr netip.Addr, other string) bool {
	return slices.ContainsFunc(v.enis, func(nic cloud.Interface) bool {
		return nic.Index >= 0 && nic.ID != other && (nic.V4.Primary.Addr() == addr || nic.V6.Primary.Addr() == addr)
	})
}

// ids returns the ids of the cache's ENIs by index.
func ids(cached *ipam.State) map[int]string {
	list := map[int]string{}
	for _, nic := range cached.ENIs {
		list[nic.Index] = nic.ID
	}
	return list
}

// compare finds what the cache has to learn, on a node with those links by MAC. It changes nothing.
func (b belief) compare(cached *ipam.State, links map[string]eni.Interface, now time.Duration) facts {
	f := facts{addrs: map[int][]netip.Addr{}}
	at, id := b.view.places(), ids(cached)
	matched := 0
	for i := range cached.Addresses {
		line := &cached.Addresses[i]
		where := at[line.Addr]
		if where != "" {
			matched++
		}
		if where == "" && !line.Lost && line.State != eni.Releasing && b.view.heads(line.Addr, id[line.ENI]) {
			f.lost = append(f.lost, line.Addr) // the cache has no room for that ENI before
		} else if where != id[line.ENI] {
			f.absent(b, line, slices.Contains(b.notes.Gone[id[line.ENI]], line.Addr), cached.IsCooling(line, now))
		} else if line.Lost {
			f.found = append(f.found, line.Addr)
		}
	}
	var known map[netip.Addr]bool
	if matched < len(at) {
		known = knownOf(cached)
	}
	for _, nic := range b.view.enis {
		if b.refused(nic.ID) {
			f.refused = true
			continue
		}
		index, ours := f.place(b, cached, links, nic.ID)
		if !ours || known == nil || nic.Index < 0 || index < b.first || b.mem.isLeaving(nic.ID) {
			continue
		}
		for _, addr := range nic.Addresses {
			if !known[addr] && at[addr] == nic.ID { // else it is shown as it was before a call under way
				f.addrs[index] = append(f.addrs[index], addr)
			}
		}
		if have, ok := cached.Interface(index); ok && have.ID == nic.ID {
			f.wider = append(f.wider, widenedFor(have, eni.Interface{V4: nic.V4, V6: nic.V6, Pods: nic.Pods}, f.addrs[index]))
		}
	}
	for _, nic := range cached.ENIs {
		switch {
		case nic.Index == 0 || !b.isGone(nic.ID):
		case !inUse(cached, nic.Index):
			f.dropENI = append(f.dropENI, nic.ID)
		case f.replaces(nic, at):
			f.replace = append(f.replace, nic.ID)
		}
	}
	return f
}

// replaces tells whether the cache has no room for what is new beside an ENI that is gone: it has
// the index or link of another one, or its primary address is one for pods by now.
func (f *facts) replaces(gone eni.Interface, at map[netip.Addr]string) bool {
	return slices.ContainsFunc(f.enis, func(nic eni.Interface) bool { return nic.Index == gone.Index || nic.Device == gone.Device }) ||
		slices.ContainsFunc(gone.Nets(), func(n eni.Net) bool { return at[n.Primary.Addr()] != "" })
}

// knownOf returns the addresses of the cache. It is only asked where not all of the
// cloud's are among them, which is seldom.
func knownOf(cached *ipam.State) map[netip.Addr]bool {
	known := make(map[netip.Addr]bool, len(cached.Addresses))
	for i := range cached.Addresses {
		known[cached.Addresses[i].Addr] = true
	}
	return known
}

// place returns the device index of an ENI of the cloud in the cache, or in the
// cache to come. Others' ENIs, and those that are still being made, have none.
func (f *facts) place(b belief, cached *ipam.State, links map[string]eni.Interface, id string) (int, bool) {
	nic, _ := b.view.eni(id)
	for _, have := range cached.ENIs {
		if have.ID == id {
			return have.Index, true
		}
	}
	if nic.Index < 0 || nic.Token != "" && b.mem.making(nic.Token) || !nic.Ours && nic.Index > 0 {
		return 0, false
	}
	link, ok := links[nic.MAC]
	if !ok {
		f.waiting = append(f.waiting, fmt.Sprintf("%s (%s)", nic.ID, nic.MAC))
		return 0, false
	}
	index := f.indexFor(b, cached, nic.Index)
	made := eni.Interface{ID: nic.ID, Index: index, Device: link.Device, MTU: link.MTU, V4: nic.V4, V6: nic.V6}
	f.enis = append(f.enis, widenedFor(made, eni.Interface{Pods: nic.Pods}, nic.Addresses))
	return index, true
}

// indexFor returns the index of an ENI in the cache to come: the cloud's, unless an ENI that is
// on the node has it in the cache. Somebody has attached that one again elsewhere, or taken its
// mark. Then it is the lowest that nobody has.
func (f *facts) indexFor(b belief, cached *ipam.State, index int) int {
	taken := map[int]bool{}
	for _, nic := range f.enis {
		taken[nic.Index] = true
	}
	clash := taken[index]
	for _, nic := range cached.ENIs {
		have, shown := b.view.eni(nic.ID)
		taken[nic.Index] = true
		clash = clash || nic.Index == index && shown && have.Index >= 0
	}
	if !clash {
		return index
	}
	for _, nic := range b.view.enis {
		taken[nic.Index] = true
	}
	for index = 1; taken[index] && index < eni.MaxIndex; index++ {
	}
	return index
}

// absent judges a line of the cache whose address is not where it should be; ours if a call
// has taken it from there.
func (f *facts) absent(b belief, line *eni.Address, ours, cools bool) {
	first, missing := b.doubts.suspects[line.Addr]
	sure := missing && b.view.start-first >= b.settle
	switch {
	case line.State == eni.Releasing && (ours || sure):
		f.drop = append(f.drop, line.Addr)
	case line.State == eni.Releasing || line.Lost:
	case sure:
		f.lost = append(f.lost, line.Addr)
	case missing && line.State != eni.Used && !cools:
		f.suspect = append(f.suspect, line.Addr)
	}
}

// isGone tells whether an ENI of the cache is surely not on the node any
// more: we deleted it, or two describes far enough apart did not show it.
func (b belief) isGone(id string) bool {
	nic, known := b.view.eni(id)
	if !b.view.known || known && nic.Index >= 0 {
		return false
	}
	first, missing := b.doubts.strays[id]
	return slices.Contains(b.notes.Deleted, id) || missing && b.view.start-first >= b.settle
}

// inUse tells whether a pod has an address of the ENI, or one rests there.
func inUse(cached *ipam.State, index int) bool {
	return slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool {
		return line.ENI == index && line.State != eni.Releasing
	})
}

// none tells whether there is nothing to learn, and nothing to wait for.
func (f facts) none() bool {
	return len(f.enis)+len(f.addrs)+len(f.suspect)+len(f.lost)+len(f.found)+len(f.drop)+len(f.dropENI)+len(f.replace)+len(f.waiting) == 0
}

// lines tells people what the cache would learn.
func (f facts) lines() []string {
	var list []string
	for _, nic := range f.enis {
		list = append(list, fmt.Sprintf("adopt eni %s as %s: it is attached to the node", nic.ID, nic.Device))
	}
	for _, index := range slices.Sorted(maps.Keys(f.addrs)) {
		list = append(list, fmt.Sprintf("add %d addresses on ENI %d: they are assigned", len(f.addrs[index]), index))
	}
	for _, part := range []struct {
		what  string
		addrs []netip.Addr
		why   string
	}{
		{"hold back", f.suspect, "the cloud's last answer did not show them"},
		{"quarantine", f.lost, "the cloud does not have them on this node any more"},
		{"regain", f.found, "the cloud shows them again"},
		{"forget", f.drop, "the cloud no longer has them"},
	} {
		if len(part.addrs) > 0 {
			list = append(list, fmt.Sprintf("%s %d addresses (%s): %s", part.what, len(part.addrs), brief(part.addrs), part.why))
		}
	}
	for _, id := range f.dropENI {
		list = append(list, "forget eni "+id+": it is not attached to the node any more")
	}
	for _, id := range f.waiting {
		list = append(list, "wait for the link of "+id)
	}
	return list
}
