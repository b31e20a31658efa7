package sim

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// nic is an ENI with what it was. The slices and maps of its Interface are never
// changed in place.
type nic struct {
	Interface
	number int                 // in the order of creation
	gone   bool                // it is deleted
	wired  bool                // it is in the Network
	hidden netip.Addr          // the IPv6 address that its port in the Network has
	seen   history[*Interface] // nil from when it was deleted
	tags   []tag               // that it has or had
	homes  []*machine          // that it is or was on
}

// machine is an instance with its ENIs.
type machine struct {
	Instance
	nics []*nic // attached ones, and those on their way in or out
	had  []*nic // those that are or were so, as long as somebody may see it
}

// tag is one of a resource's.
type tag struct{ key, value string }

// shelf has all ENIs, and finds them without looking at the others.
type shelf struct {
	nics   []*nic // in the order of creation, with those deleted that may still be shown
	byID   map[string]*nic
	places map[string]*nic // by attachment
	tagged map[tag][]*nic  // those that have or had the tag
	dead   []*nic          // of nics, those deleted, in the order of that
}

// put takes in a new ENI.
func (s *shelf) put(n *nic) {
	s.nics = append(s.nics, n)
	s.byID[n.ID] = n
	s.index(n)
}

// index lets the ENI be found by its tags. It stays so by those it had: an old answer
// may show them.
func (s *shelf) index(n *nic) {
	for key, value := range n.Tags {
		if t := (tag{key, value}); !slices.Contains(n.tags, t) {
			n.tags = append(n.tags, t)
			s.tagged[t] = append(s.tagged[t], n)
		}
	}
}

// takePlace notes that the ENI is on the instance, or on its way.
func (s *shelf) takePlace(m *machine, n *nic) {
	m.nics = append(m.nics, n)
	if !slices.Contains(n.homes, m) {
		n.homes = append(n.homes, m)
		m.had = append(m.had, n)
	}
	s.places[n.Attachment.ID] = n
}

// forget drops what was deleted longer than keep before now.
func (s *shelf) forget(now time.Time, keep time.Duration) {
	oldest := now.Add(-keep)
	for len(s.dead) > 0 {
		n := s.dead[0]
		if keep > 0 && n.seen[len(n.seen)-1].at.After(oldest) {
			return
		}
		s.dead = slices.Delete(s.dead, 0, 1)
		s.nics = drop(s.nics, n)
		for _, t := range n.tags {
			if s.tagged[t] = drop(s.tagged[t], n); len(s.tagged[t]) == 0 {
				delete(s.tagged, t)
			}
		}
		for _, m := range n.homes {
			m.had = drop(m.had, n)
		}
	}
}

// add puts a new ENI into the account.
func (a *Account) add(n *nic) {
	n.number = a.made["eni"]
	a.put(n)
	a.changed(n)
}

// remove deletes an ENI that is not attached.
func (a *Account) remove(n *nic) {
	n.gone = true
	a.release(n)
	delete(a.byID, n.ID)
	a.changed(n)
	a.dead = append(a.dead, n)
	a.forgetDead()
}

// forgetDead drops what was deleted longer ago than anybody may ask for.
func (a *Account) forgetDead() { a.forget(a.now, a.keep) }

// drop takes the ENI out of a list.
func drop(list []*nic, n *nic) []*nic {
	if at := slices.Index(list, n); at >= 0 {
		return slices.Delete(list, at, at+1)
	}
	return list
}

// InterfacesOf returns the ENIs that are on the instance, or on their way to or from
// it, and those on none that have the tag, in the order of their creation. It does not
// look at the others: an account may have thousands.
func (tx *Tx) InterfacesOf(instance, key, value string) []Interface {
	var found []*nic
	if m := tx.a.machines[instance]; m != nil {
		found = append(found, m.had...)
	}
	for _, n := range tx.a.tagged[tag{key, value}] {
		if !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(x, y *nic) int { return cmp.Compare(x.number, y.number) })
	list := make([]Interface, 0, len(found))
	for _, n := range found {
		i, ok := tx.shown(n)
		if ok && (i.At(instance) || i.Attachment == nil && i.Tags[key] == value) {
			list = append(list, i)
		}
	}
	return list
}

// Tagged returns the ENIs that have the tag, in the order of their creation, and maybe some
// that had it.
func (tx *Tx) Tagged(key, value string) []Interface {
	found := slices.SortedFunc(slices.Values(tx.a.tagged[tag{key, value}]), func(x, y *nic) int { return cmp.Compare(x.number, y.number) })
	list := make([]Interface, 0, len(found))
	for _, n := range found {
		if i, ok := tx.shown(n); ok {
			list = append(list, i)
		}
	}
	return list
}
