package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"

	"github.com/enipool/enipool/pkg/eni"
)

// Load makes an account of what Save has written. It changes nothing in a
// Network: that must be the one that the account had, in the same process, and
// Load fails where it holds something else. A Network can't be opened again by
// another process, so there an account lives on in memory only.
func Load(o Options, r io.Reader) (*Account, error) {
	var s saved
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	if err == nil && s.Format != savedFormat {
		err = fmt.Errorf("its format is %d, this version reads %d", s.Format, savedFormat)
	}
	a := NewAccount(o)
	if err == nil {
		err = a.restore(s)
	}
	if err != nil {
		return nil, fmt.Errorf("load account: %w", err)
	}
	return a, nil
}

// restore puts a saved state into a new account, and checks it: a file can be edited.
func (a *Account) restore(state saved) error {
	a.lock()
	defer a.mu.Unlock()
	a.vpc = state.VPC
	maps.Copy(a.made, state.Made)
	for _, g := range state.Groups {
		a.groups[g.ID] = &g
	}
	for _, t := range state.Types {
		a.types[t.Name] = t
	}
	for _, i := range state.Instances {
		a.vms[i.ID] = &vm{Instance: i}
	}
	for _, m := range state.Nodes {
		if a.vms[m.Name] == nil {
			return fmt.Errorf("node %s: there is no instance of that name", m.Name)
		}
		a.nodes.byName[m.Name] = m
	}
	// In the order in which each needs what is there: nodes their instances, ENIs subnets and
	// instances, what is to happen its ENI.
	for _, old := range state.Subnets {
		if err := a.restoreSubnet(old); err != nil {
			return fmt.Errorf("subnet %s: %w", old.ID, err)
		}
	}
	for n, old := range state.ENIs {
		if err := a.restoreENI(n, old); err != nil {
			return fmt.Errorf("ENI %s: %w", old.ID, err)
		}
	}
	for _, c := range state.Coming {
		if err := a.restoreComing(c); err != nil {
			return err
		}
	}
	for _, sub := range a.subnets {
		a.noteChangedSubnet(sub)
		sub.seen.fromStart()
	}
	return a.checkAll()
}

// restoreSubnet puts a subnet back, with what its pools know beyond the addresses of ENIs.
func (a *Account) restoreSubnet(old savedSubnet) error {
	made, err := a.newSubnet(old.Subnet)
	if err != nil {
		return err
	}
	for _, f := range made.families() {
		was, pool := old.Pool4, made.pool(f)
		if f == eni.IPv6 {
			was = old.Pool6
		}
		if was == nil {
			return fmt.Errorf("it has no %s addresses", f)
		}
		// One past the last address is right: all were given out once.
		if was.Next.IsValid() && !pool.net.Contains(was.Next) && was.Next != lastOf(pool.net).Next() {
			return fmt.Errorf("%s is listed as the next", was.Next)
		}
		pool.next, pool.freed, pool.others, pool.unmanaged = was.Next, was.Freed, was.Others, was.Unmanaged
		pool.turn, pool.fragmented = was.Turn, was.Fragmented
		for _, addr := range pool.others {
			pool.mark(addr, unmanagedOwner)
		}
	}
	a.subnets[made.ID] = made
	return made.restoreKept(old.Kept)
}

// restoreENI puts an ENI back with what it has. number is its place in the order of creation.
func (a *Account) restoreENI(number int, old Interface) (err error) {
	sub := a.subnets[old.Subnet]
	if sub == nil {
		return fmt.Errorf("there is no subnet %q", old.Subnet)
	}
	nic := &nic{Interface: old}
	for _, addr := range nic.Addresses() {
		p := a.poolOf(nic, addr)
		if p == nil {
			return fmt.Errorf("address %s is not of subnet %s", addr, sub.ID)
		}
		if other := p.used[addr]; other != "" && other != reservedOwner {
			return fmt.Errorf("address %s is of %s", addr, other)
		}
		// Not use: a saved pool's list of free addresses lacks it already.
		p.mark(addr, nic.ID)
	}
	for _, b := range nic.Prefixes {
		p := sub.pool(eni.FamilyOf(b.Addr()))
		if p == nil || p.blocks[b] != "" {
			return fmt.Errorf("prefix %s is not free in subnet %s", b, sub.ID)
		}
		p.blocks[b] = nic.ID
	}
	if nic.hidden, err = a.takeHidden(nic, sub); err != nil {
		return err
	}
	if at := nic.Attachment; at != nil {
		m := a.vms[at.Instance]
		if m == nil {
			return fmt.Errorf("there is no instance %q", at.Instance)
		}
		a.takePlace(m, nic)
		nic.wired = a.o.Network != nil && nic.Status == InUse
	}
	a.addNIC(nic)
	nic.number = number
	nic.seen.fromStart()
	return nil
}

// restoreComing schedules again what was to happen.
func (a *Account) restoreComing(next coming) error {
	n := a.byID[next.ENI]
	var do func()
	switch {
	case n == nil:
		return fmt.Errorf("what is to happen to ENI %q can't be: there is none", next.ENI)
	case next.What == ready:
		do = func() { a.finishCreating(n) }
	case next.What == arrives:
		do = func() { a.finishAttaching(n, next.Attachment) }
	case next.What == leaves:
		do = func() { a.finishDetaching(n, next.Attachment) }
	default:
		return fmt.Errorf("nothing happens that is called %q", next.What)
	}
	a.schedule(next.At, next.happening, do)
	return nil
}
