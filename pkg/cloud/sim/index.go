package sim

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// nic is an ENI with its history. The slices and maps of its Interface are never changed in place,
// because callers and the history share them.
type nic struct {
	Interface
	number int                 // in the order of creation
	gone   bool                // it is deleted
	wired  bool                // it is in the Network
	hidden netip.Addr          // the IPv6 address that its port in the Network has
	seen   history[*Interface] // nil from when it was deleted
	tags   []tag               // that it has or had
	homes  []*vm               // instances that it is or was on
}

// vm is an instance, of any kind, with its ENIs.
type vm struct {
	Instance
	nics []*nic // attached ones, and those on their way in or out
	had  []*nic // those that are or were on it, for as long as a read may show it
}

// tag is one of a resource's.
type tag struct{ key, value string }

// nicIndex has all ENIs, and finds them by ID, attachment and tag without going through all.
type nicIndex struct {
	nics   []*nic // in the order of creation, with those deleted that may still be shown
	byID   map[string]*nic
	places map[string]*nic // by attachment
	tagged map[tag][]*nic  // those that have or had the tag
	dead   []*nic          // of nics, those deleted, in the order of that
}

// putNIC adds a new ENI.
func (s *nicIndex) putNIC(n *nic) {
	s.nics = append(s.nics, n)
	s.byID[n.ID] = n
	s.indexTags(n)
}

// indexTags lets the ENI be found by its tags. It is still found by tags that it had, because an
// answer that lags may show them.
func (s *nicIndex) indexTags(n *nic) {
	for key, value := range n.Tags {
		if t := (tag{key, value}); !slices.Contains(n.tags, t) {
			n.tags = append(n.tags, t)
			s.tagged[t] = append(s.tagged[t], n)
		}
	}
}

// takePlace notes that the ENI is on the instance, or on its way to it.
func (s *nicIndex) takePlace(m *vm, n *nic) {
	m.nics = append(m.nics, n)
	if !slices.Contains(n.homes, m) {
		n.homes = append(n.homes, m)
		m.had = append(m.had, n)
	}
	s.places[n.Attachment.ID] = n
}

// forgetBefore drops ENIs that were deleted longer than keep ago.
func (s *nicIndex) forgetBefore(now time.Time, keep time.Duration) {
	oldest := now.Add(-keep)
	for len(s.dead) > 0 {
		nic := s.dead[0]
		if keep > 0 && nic.seen[len(nic.seen)-1].at.After(oldest) {
			return
		}
		s.dead = slices.Delete(s.dead, 0, 1)
		s.nics = dropNIC(s.nics, nic)
		for _, t := range nic.tags {
			if s.tagged[t] = dropNIC(s.tagged[t], nic); len(s.tagged[t]) == 0 {
				delete(s.tagged, t)
			}
		}
		for _, m := range nic.homes {
			m.had = dropNIC(m.had, nic)
		}
	}
}

// addNIC puts a new ENI into the account.
func (a *Account) addNIC(n *nic) {
	n.number = a.made["eni"]
	a.putNIC(n)
	a.noteChanged(n)
}

// removeNIC deletes an ENI that is not attached.
func (a *Account) removeNIC(n *nic) {
	n.gone = true
	a.releaseAddresses(n)
	delete(a.byID, n.ID)
	a.noteChanged(n)
	a.dead = append(a.dead, n)
	a.forgetDead()
}

// forgetDead drops what was deleted longer ago than anybody may ask for.
func (a *Account) forgetDead() { a.forgetBefore(a.now, a.historyFor) }

// dropNIC takes the ENI out of a list.
func dropNIC(list []*nic, n *nic) []*nic {
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
	if m := tx.a.vms[instance]; m != nil {
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
		// The indexes include what was: only what is visible to this read decides.
		i, ok := tx.visible(n)
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
		if i, ok := tx.visible(n); ok {
			list = append(list, i)
		}
	}
	return list
}
