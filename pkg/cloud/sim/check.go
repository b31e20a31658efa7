package sim

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

type complain func(format string, args ...any)

// Check returns what is wrong with the account: an address with two owners or
// outside of its subnet, a limit exceeded, numbers that don't add up, a Network
// that holds something else.
func (a *Account) Check() error {
	a.lock()
	defer a.mu.Unlock()
	return a.checkAll()
}

// checkAll is Check of a caller that holds the lock.
func (a *Account) checkAll() error {
	errs := append([]error(nil), a.broken...)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if a.o.MaxENIs > 0 && len(a.byID) > a.o.MaxENIs {
		bad("the account has %d ENIs, it may have %d", len(a.byID), a.o.MaxENIs)
	}
	// One map for all ENIs: it finds an address on two of them.
	owners := make(map[netip.Addr]string, a.inUse())
	for _, n := range a.byID {
		a.checkNIC(n, owners, bad)
	}
	for _, m := range a.vms {
		a.checkVM(m, bad)
	}
	for _, m := range a.nodes.byName {
		nodeView{&Tx{a: a}, m}.checkNode(bad)
	}
	for _, s := range a.subnets {
		for _, f := range s.families() {
			s.pool(f).checkPool(a.byID, bad)
		}
	}
	return errors.Join(append(errs, a.checkWires())...)
}

// inUse returns how many single addresses have an owner.
func (a *Account) inUse() (n int) {
	for _, s := range a.subnets {
		for _, f := range s.families() {
			n += len(s.pool(f).used)
		}
	}
	return n
}

// checkNIC checks an ENI's addresses, slots and state.
func (a *Account) checkNIC(nic *nic, owners map[netip.Addr]string, bad complain) {
	sub := a.subnets[nic.Subnet]
	for _, addr := range nic.Addresses() {
		if other, ok := owners[addr]; ok {
			bad("address %s is on ENI %s and on ENI %s", addr, other, nic.ID)
		}
		owners[addr] = nic.ID
		p := a.poolOf(nic, addr)
		if p == nil || p.reserved[addr] {
			bad("address %s of ENI %s is reserved or not of subnet %s", addr, nic.ID, nic.Subnet)
		} else if p.used[addr] != nic.ID {
			bad("address %s of ENI %s is of %q in its pool", addr, nic.ID, p.used[addr])
		}
	}
	for _, b := range nic.Prefixes {
		if p := sub.pool(eni.FamilyOf(b.Addr())); p == nil || p.blocks[b] != nic.ID || p.blockOf(b.Addr()) != b {
			bad("prefix %s of ENI %s is another's in its pool", b, nic.ID)
		}
	}
	// Only an ENI that is pending or available has no instance, whatever happened to it.
	m := a.vmOf(nic)
	if (m == nil) != (nic.Status == Pending || nic.Status == Available) {
		bad("ENI %s is %s with attachment %+v", nic.ID, nic.Status, nic.Attachment)
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if m == nil || a.lifted {
			break
		}
		if limit := a.types[m.Type].slots(f, nic.Attachment.Index); nic.Slots(f) > limit {
			bad("ENI %s has %d of %s, it may have %d", nic.ID, nic.Slots(f), f, limit)
		}
	}
	if a.o.Network != nil && nic.wired != (nic.Status == InUse) {
		bad("ENI %s is %s, in the network: %v", nic.ID, nic.Status, nic.wired)
	}
}

// checkVM checks the ENIs of an instance.
func (a *Account) checkVM(host *vm, bad complain) {
	t := a.types[host.Type]
	if len(host.nics) > t.ENIs && !a.lifted {
		bad("instance %s has %d ENIs, it may have %d", host.ID, len(host.nics), t.ENIs)
	}
	places := map[[2]int]string{}
	for _, n := range host.nics {
		if n.Attachment == nil || n.Attachment.Instance != host.ID || a.byID[n.ID] != n {
			bad("instance %s lists ENI %s, which is not there", host.ID, n.ID)
			continue
		}
		place := [2]int{n.Attachment.Card, n.Attachment.Index}
		if other, ok := places[place]; ok {
			bad("instance %s has ENIs %s and %s at %v", host.ID, other, n.ID, place)
		}
		places[place] = n.ID
	}
	if own := places[[2]int{}]; own == "" && !host.Terminated {
		bad("instance %s has no primary ENI", host.ID)
	}
}

// checkPool compares what the pool has noted with itself and with the ENIs that exist.
func (p *pool) checkPool(nics map[string]*nic, bad complain) {
	inside := make(map[netip.Prefix]int, len(p.inside))
	for addr := range p.reserved {
		inside[p.blockOf(addr)]++
	}
	for addr, owner := range p.used {
		block := p.blockOf(addr)
		inside[block]++
		if nics[owner] == nil && owner != unmanagedOwner && owner != hiddenOwner && owner != reservedOwner {
			bad("address %s is of %s, which does not exist", addr, owner)
		}
		if len(p.blocks) > 0 && p.blocks[block] != "" {
			bad("address %s is used, and in prefix %s too", addr, block)
		}
	}
	for b, owner := range p.blocks {
		if inside[b] > 0 || nics[owner] == nil {
			bad("prefix %s of %s has %d addresses that are used", b, owner, inside[b])
		}
	}
	for b, n := range p.inside {
		if inside[b] != n {
			bad("prefix %s has %d used addresses, counted as %d", b, inside[b], n)
		}
	}
	// An address that is freed twice would be given to two ENIs.
	freed := make(map[netip.Addr]bool, len(p.freed))
	for _, addr := range p.freed {
		if freed[addr] || !p.isFree(addr) || p.next.IsValid() && !addr.Less(p.next) {
			bad("address %s is listed as free", addr)
		}
		freed[addr] = true
	}
	if left := p.size - len(p.used) - p.unmanaged; p.unmanaged < 0 || p.size <= endless && left < len(p.blocks)*p.perBlock() {
		bad("subnet %s has %d addresses, %d of them are used and %d others', and it gave %d blocks", p.net, p.size, len(p.used), p.unmanaged, len(p.blocks))
	}
	p.checkKept(bad)
	p.checkCount(len(freed), bad)
}

// checkCount counts a small pool's free addresses.
func (p *pool) checkCount(freed int, bad complain) {
	if p.size > endless {
		return
	}
	free := freed
	for a := p.next; a.IsValid() && p.net.Contains(a); a = a.Next() {
		if p.isFree(a) {
			free++
		}
	}
	if free = max(free-p.unmanaged, 0); free != p.free() {
		bad("subnet %s has %d free addresses, counted as %d", p.net, free, p.free())
	}
}
