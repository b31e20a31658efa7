package engine

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/eni"
)

// number gives each attached ENI an index where the cloud has none. Ours have the one
// that was free when they were made, the older first; all others count down from the
// highest.
func (n *Node) number(nics []nic) {
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
	for at := range nics {
		if i := &nics[at]; i.raw.State != driver.Attached {
			i.Index = -1
		}
	}
}

// separate leaves out ENIs that claim the same index, MAC or primary address, and the
// addresses that several ENIs claim: which of them is right can't be told. The primary
// ENI keeps its MAC and primary addresses: without it there is nothing to go by. What a call
// has just taken from an ENI is no claim, though answers still show it: the cloud may have
// given it to the next one. Nor is what a call has just put elsewhere.
func (v *view) separate(taken func(nic) []netip.Addr, last placed) {
	v.giveWay()
	last = last.among(v.nics)
	v.nics = slices.DeleteFunc(v.nics, func(i nic) bool {
		why := last.against(i)
		if why != "" {
			v.leaveOut(i.raw, why)
		}
		return why != ""
	})
	if len(v.nics) < 2 {
		return // nobody is in its way
	}
	index, macs, most := map[int]int{}, map[string]int{}, 0
	for i := range v.nics {
		most += len(v.nics[i].Addresses) + 2
	}
	claims := make(map[netip.Addr]int, most)
	for _, i := range v.nics {
		index[i.Index]++
		macs[i.MAC]++
		for _, a := range minus(i.Addresses, append(taken(i), last.elsewhere(i)...)) {
			claims[a]++
		}
		claims[i.V4.Primary.Addr()]++
		claims[i.V6.Primary.Addr()]++
	}
	clashes := func(a netip.Addr) bool { return a.IsValid() && claims[a] > 1 }
	all := v.nics
	v.nics = nil
	for _, i := range all {
		switch {
		case i.Index >= 0 && index[i.Index] > 1:
			v.leaveOut(i.raw, fmt.Sprintf("another ENI has device index %d too", i.Index))
			continue
		case macs[i.MAC] > 1 && !i.raw.Primary:
			v.leaveOut(i.raw, fmt.Sprintf("another ENI has MAC %s too", i.MAC))
			continue
		case (clashes(i.V4.Primary.Addr()) || clashes(i.V6.Primary.Addr())) && !i.raw.Primary:
			v.leaveOut(i.raw, "another ENI has its primary address too")
			continue
		}
		for _, a := range i.Addresses {
			if clashes(a) {
				v.out = append(v.out, cloud.Quarantined{ID: i.ID, Address: a, Why: fmt.Sprintf("another ENI has its address %s too, which is left out alone", a)})
			}
		}
		i.Addresses = slices.DeleteFunc(i.Addresses, clashes)
		v.nics = append(v.nics, i)
	}
}

// giveWay leaves out others' ENIs that are in the way of the node's own: of another VPC, whose
// ranges may be the same, or at the index of one.
func (v *view) giveWay() {
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
