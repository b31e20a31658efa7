package engine

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// numberENIs gives each attached ENI an index if the cloud has none. ENIs of ours have the index
// in their mark; if two have the same, the older one gets it. All others count down from the
// highest.
func (n *Node) numberENIs(nics []nic) {
	if !n.t.NoIndex {
		return
	}
	taken := map[int]bool{0: true}
	rest := []*nic{}
	for at := range nics {
		i := &nics[at]
		switch index := i.raw.Mark.Index; {
		case i.raw.Primary:
			i.Index = 0
		case i.Ours && !taken[index]:
			taken[index] = true
			i.Index = index
		default:
			rest = append(rest, i)
		}
	}
	high := eni.MaxIndex
	for _, i := range rest {
		for ; taken[high]; high-- {
		}
		taken[high], i.Index = true, high
	}
	// ENIs on their way were numbered too: when they arrive they have the index that was free.
	for at := range nics {
		if i := &nics[at]; i.raw.State != driver.Attached {
			i.Index = -1
		}
	}
}

// leaveOutClashing leaves out ENIs that are shown with the same index, MAC or primary address,
// and addresses that several ENIs are shown with: nobody can tell which of them is right. The
// primary ENI keeps its MAC and primary addresses, because no view works without it.
//
// An address that a call has just unassigned does not count for its old ENI, though answers
// still show it there: the cloud may have assigned it to another one. Nor does one that a call
// has just assigned elsewhere.
func (v *view) leaveOutClashing(taken func(nic) []netip.Addr, last placed) {
	v.preferOwn()
	last = last.shownBy(v.nics)
	v.nics = slices.DeleteFunc(v.nics, func(i nic) bool {
		why := last.whyNotHere(i)
		if why != "" {
			v.leaveOut(i.raw, why)
		}
		return why != ""
	})
	if len(v.nics) < 2 {
		return // a single ENI clashes with none
	}
	index, macs, most := map[int]int{}, map[string]int{}, 0
	for i := range v.nics {
		most += len(v.nics[i].Addresses) + 2
	}
	claims := make(map[netip.Addr]int, most)
	for _, i := range v.nics {
		index[i.Index]++
		macs[i.MAC]++
		for _, a := range minus(i.Addresses, append(taken(i), last.addressesElsewhere(i)...)) {
			claims[a]++
		}
		claims[i.V4.Primary.Addr()]++
		claims[i.V6.Primary.Addr()]++
	}
	clashes := func(a netip.Addr) bool { return a.IsValid() && claims[a] > 1 }
	all := v.nics
	v.nics = nil
	for _, on := range all {
		switch {
		case on.Index >= 0 && index[on.Index] > 1:
			v.leaveOut(on.raw, fmt.Sprintf("another ENI has device index %d too", on.Index))
			continue
		case macs[on.MAC] > 1 && !on.raw.Primary:
			v.leaveOut(on.raw, fmt.Sprintf("another ENI has MAC %s too", on.MAC))
			continue
		case (clashes(on.V4.Primary.Addr()) || clashes(on.V6.Primary.Addr())) && !on.raw.Primary:
			v.leaveOut(on.raw, "another ENI has its primary address too")
			continue
		}
		for _, a := range on.Addresses {
			if clashes(a) {
				v.out = append(v.out, cloud.Quarantined{ID: on.ID, Address: a, Why: fmt.Sprintf("another ENI has its address %s too, which is left out alone", a)})
			}
		}
		on.Addresses = slices.DeleteFunc(on.Addresses, clashes)
		v.nics = append(v.nics, on)
	}
}

// preferOwn leaves out ENIs of others that clash with the primary ENI or with ENIs of ours: they
// are in another VPC, whose ranges may be the same, or are shown at the same index.
func (v *view) preferOwn() {
	own, vpc := map[int]bool{}, ""
	for _, i := range v.nics {
		if i.raw.Primary {
			vpc = i.raw.VPC
		}
		if i.Ours || i.raw.Primary {
			own[i.Index] = i.Index >= 0
		}
	}
	v.nics = slices.DeleteFunc(v.nics, func(i nic) bool {
		far := vpc != "" && i.raw.VPC != "" && i.raw.VPC != vpc
		gives := !i.Ours && !i.raw.Primary && (far || own[i.Index])
		if gives {
			v.leaveOut(i.raw, "it is not enipool's, and in the way of what is")
		}
		return gives
	})
}
