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

func (a *Account) restore(s saved) error {
	a.lock()
	defer a.mu.Unlock()
	a.vpc = s.VPC
	maps.Copy(a.made, s.Made)
	for _, g := range s.Groups {
		a.groups[g.ID] = &g
	}
	for _, t := range s.Types {
		a.types[t.Name] = t
	}
	for _, i := range s.Instances {
		a.machines[i.ID] = &machine{Instance: i}
	}
	for _, m := range s.Nodes {
		if a.machines[m.Name] == nil {
			return fmt.Errorf("node %s: there is no instance of that name", m.Name)
		}
		a.nodes.machines[m.Name] = m
	}
	for _, old := range s.Subnets {
		if err := a.restoreSubnet(old); err != nil {
			return fmt.Errorf("subnet %s: %w", old.ID, err)
		}
	}
	for n, old := range s.ENIs {
		if err := a.restoreENI(n, old); err != nil {
			return fmt.Errorf("ENI %s: %w", old.ID, err)
		}
	}
	for _, c := range s.Coming {
		if err := a.restoreComing(c); err != nil {
			return err
		}
	}
	for _, sub := range a.subnets {
		a.changedSubnet(sub)
		sub.seen.fromStart()
	}
	return a.check()
}

func (a *Account) restoreSubnet(old savedSubnet) error {
	made, err := a.newSubnet(old.Subnet)
	if err != nil {
		return err
	}
	for _, f := range made.families() {
		was, p := old.Pool4, made.pool(f)
		if f == eni.IPv6 {
			was = old.Pool6
		}
		if was == nil {
			return fmt.Errorf("it has no %s addresses", f)
		}
		if was.Next.IsValid() && !p.net.Contains(was.Next) && was.Next != lastOf(p.net).Next() {
			return fmt.Errorf("%s is listed as the next", was.Next)
		}
		p.next, p.freed, p.others, p.foreign = was.Next, was.Freed, was.Others, was.Foreign
		p.turn, p.fragmented = was.Turn, was.Fragmented
		for _, addr := range p.others {
			p.mark(addr, foreign)
		}
	}
	a.subnets[made.ID] = made
	return made.restoreKept(old.Kept)
}

// restoreENI puts the n-th ENI back with what it has.
func (a *Account) restoreENI(number int, old Interface) (err error) {
	s := a.subnets[old.Subnet]
	if s == nil {
		return fmt.Errorf("there is no subnet %q", old.Subnet)
	}
	n := &nic{Interface: old}
	for _, addr := range n.Addresses() {
		p := a.poolOf(n, addr)
		if p == nil {
			return fmt.Errorf("address %s is not of subnet %s", addr, s.ID)
		}
		if other := p.used[addr]; other != "" && other != kept {
			return fmt.Errorf("address %s is of %s", addr, other)
		}
		p.mark(addr, n.ID)
	}
	for _, b := range n.Prefixes {
		p := s.pool(eni.FamilyOf(b.Addr()))
		if p == nil || p.blocks[b] != "" {
			return fmt.Errorf("prefix %s is not free in subnet %s", b, s.ID)
		}
		p.blocks[b] = n.ID
	}
	if n.hidden, err = a.hide(n, s); err != nil {
		return err
	}
	if at := n.Attachment; at != nil {
		m := a.machines[at.Instance]
		if m == nil {
			return fmt.Errorf("there is no instance %q", at.Instance)
		}
		a.takePlace(m, n)
		n.wired = a.o.Network != nil && n.Status == InUse
	}
	a.add(n)
	n.number = number
	n.seen.fromStart()
	return nil
}

func (a *Account) restoreComing(c coming) error {
	n := a.byID[c.ENI]
	var do func()
	switch {
	case n == nil:
		return fmt.Errorf("what is to happen to ENI %q can't be: there is none", c.ENI)
	case c.What == ready:
		do = func() { a.available(n) }
	case c.What == arrives:
		do = func() { a.arrive(n, c.Attachment) }
	case c.What == leaves:
		do = func() { a.departed(n, c.Attachment) }
	default:
		return fmt.Errorf("nothing happens that is called %q", c.What)
	}
	a.at(c.At, c.happening, do)
	return nil
}
