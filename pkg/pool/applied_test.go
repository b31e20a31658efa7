package pool

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// applied returns the snapshot as it is when every step has worked, at once and as
// asked for. Nothing else changes: what was on its way before still is. New ENIs
// and addresses have names of their own making: new-1, 198.18.0.1, 2001:db8::1 and
// so on.
func applied(s Snapshot, steps []Step) Snapshot {
	s.ENIs, s.Subnets = slices.Clone(s.ENIs), slices.Clone(s.Subnets)
	for i := range s.ENIs {
		s.ENIs[i].Addresses = slices.Clone(s.ENIs[i].Addresses)
	}
	w := &world{Snapshot: &s, taken: map[netip.Addr]bool{}, made: map[eni.Family]int{}}
	for _, e := range s.ENIs {
		for _, a := range e.Addresses {
			w.taken[a.Addr] = true
		}
	}
	took := map[string]map[eni.Family]int{} // from each subnet, less than 0: gave back
	for _, step := range steps {
		if took[step.Subnet] == nil {
			took[step.Subnet] = map[eni.Family]int{}
		}
		w.do(step, took[step.Subnet])
	}
	for i := range s.Subnets {
		// Free is of the scarcer family: that from which more was taken.
		n := &s.Subnets[i]
		if t := took[n.ID]; t != nil {
			most := t[s.Families[0]]
			for _, f := range s.Families {
				most = max(most, t[f])
			}
			n.Free -= most
		}
	}
	return s
}

// world is a snapshot that steps are done in.
type world struct {
	*Snapshot
	taken map[netip.Addr]bool
	made  map[eni.Family]int // addresses so far
}

func (w *world) do(step Step, took map[eni.Family]int) {
	if step.Do == Create {
		w.create(step, took)
		return
	}
	at := slices.IndexFunc(w.ENIs, func(e ENI) bool { return e.ID == step.ENI })
	if at < 0 {
		return
	}
	e := &w.ENIs[at]
	switch step.Do {
	case Restore:
		for i := range e.Addresses {
			if a := &e.Addresses[i]; slices.Contains(step.Addrs, a.Addr) {
				a.State = eni.Free
			}
		}
	case Assign:
		w.add(e, step.Family, step.Count)
		took[step.Family] += takenOfSubnet(w.Limits, step.Family, step.Count)
	case Release:
		w.giveBack(took, step.Addrs)
		e.Addresses = slices.DeleteFunc(e.Addresses, func(a Address) bool { return slices.Contains(step.Addrs, a.Addr) })
	case Delete:
		for _, f := range w.Families {
			took[f]--
		}
		var all []netip.Addr
		for _, a := range e.Addresses {
			all = append(all, a.Addr)
		}
		w.giveBack(took, all)
		w.ENIs = slices.Delete(w.ENIs, at, at+1)
	}
}

// giveBack notes what the subnet gets.
func (w *world) giveBack(took map[eni.Family]int, addrs []netip.Addr) {
	n := map[eni.Family]int{}
	for _, a := range addrs {
		n[eni.FamilyOf(a)]++
	}
	for f := range n {
		took[f] -= takenOfSubnet(w.Limits, f, n[f])
	}
}

func (w *world) create(step Step, took map[eni.Family]int) {
	e := ENI{Index: 1, Subnet: step.Subnet}
	for slices.ContainsFunc(w.ENIs, func(have ENI) bool { return have.Index == e.Index }) {
		e.Index++
	}
	for k := 1; e.ID == "" || slices.ContainsFunc(w.ENIs, func(have ENI) bool { return have.ID == e.ID }); k++ {
		e.ID = fmt.Sprintf("new-%d", k)
	}
	for _, f := range w.Families {
		n := step.V4
		if f == eni.IPv6 {
			n = step.V6
		}
		w.add(&e, f, n)
		took[f] += takenOfSubnet(w.Limits, f, n) + 1
	}
	w.ENIs = append(w.ENIs, e)
}

// add gives the ENI n addresses that nobody has: as many whole blocks as fit into n,
// and single ones.
func (w *world) add(e *ENI, f eni.Family, n int) {
	size, bits := unitSize(w.Limits, f), w.Limits.Block(f).Bits
	for ; size > 1 && n >= size; n -= size {
		w.addBlock(e, f, size, bits)
	}
	first := netip.AddrFrom4([4]byte{198, 18})
	if f == eni.IPv6 {
		first = netip.MustParseAddr("2001:db8::")
	}
	for range n {
		for w.made[f]++; w.taken[nth(first, w.made[f])]; {
			w.made[f]++
		}
		w.put(e, nth(first, w.made[f]))
	}
}

func (w *world) addBlock(e *ENI, f eni.Family, size, bits int) {
	first := netip.AddrFrom4([4]byte{198, 19})
	if f == eni.IPv6 {
		first = netip.MustParseAddr("2001:db8:0:1::")
	}
	for i := 1; ; i++ {
		from := shifted(first, i, bits)
		if w.taken[from] || w.taken[nth(from, size-1)] {
			continue
		}
		for k := range size {
			w.put(e, nth(from, k))
		}
		return
	}
}

func (w *world) put(e *ENI, a netip.Addr) {
	w.taken[a] = true
	e.Addresses = append(e.Addresses, Address{Address: eni.Address{Addr: a, ENI: e.Index, State: eni.Free}})
}

// nth returns the n-th address after first, of at most 65535. The last bits of first
// are zeros.
func nth(first netip.Addr, n int) netip.Addr { return shifted(first, n, first.BitLen()) }

// shifted returns first with n in the 16 bits before the given one.
func shifted(first netip.Addr, n, bit int) netip.Addr {
	b := first.AsSlice()
	for k := range 16 {
		if at := bit - 1 - k; n>>k&1 == 1 {
			b[at/8] |= 0x80 >> (at % 8)
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
