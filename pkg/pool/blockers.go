package pool

import "fmt"

// Blockers returns why the node can't have target slots now, for status and logs:
// what keeps each ENI from getting more, and why there is no new one. It returns
// nothing when a plan gets there.
func Blockers(c Config, s Snapshot, target int) []string {
	if len(s.Families) == 0 {
		return []string{"the node's address families are not known"}
	}
	l := open(c, s, target)
	l.grow()
	var list []string
	if target > l.most {
		list = append(list, l.limit())
	}
	if l.short() <= 0 {
		return list
	}
	for i := range s.ENIs {
		if e := &s.ENIs[i]; e.Leaving && e.Index >= c.FirstIndex(s.Limits) {
			list = append(list, fmt.Sprintf("%s is being deleted", e.ID))
		}
	}
	for _, n := range l.nics {
		list = append(list, n.blockers()...)
	}
	if why := l.full(); why != "" {
		return append(list, why)
	}
	if s.NoNew != "" {
		return append(list, "no new ENI is asked for now: "+s.NoNew)
	}
	return append(list, l.noSubnet()...)
}

// limit names what bounds the node.
func (l *ledger) limit() string {
	by := fmt.Sprintf("%d ENIs for pods with %d slots each", l.c.carriers(l.s.Limits), perENI(l.s.Limits, l.s.Families))
	switch {
	case l.most == 0:
	case l.most == l.c.MaxAllocate:
		by = "maxAllocate"
	case l.most == l.s.forPods():
		by = "the kubelet's maxPods"
		if l.s.Cooling > 0 {
			by += fmt.Sprintf(", and %d that cool down", l.s.Cooling)
		}
	}
	return fmt.Sprintf("demand needs %d slots and the node holds %d at most: %s", l.target, l.most, by)
}

// blockers returns what keeps the ENI from its full number of slots.
func (n *nic) blockers() []string {
	if n.NoLink {
		return []string{fmt.Sprintf("%s: its link %s is missing on the node", n.ID, n.Device)}
	}
	var list []string
	short := false
	for i := range n.tallies {
		t := &n.tallies[i]
		if t.lost > 0 {
			list = append(list, fmt.Sprintf("%s: %d %s addresses that the cloud took are still pods'", n.ID, t.lost, t.family))
		}
		if t.others > 0 {
			list = append(list, fmt.Sprintf("%s: %d %s addresses are held by others", n.ID, t.others, t.family))
		}
		if t.gone > 0 {
			list = append(list, fmt.Sprintf("%s: %d %s addresses are on their way back", n.ID, t.gone, t.family))
		}
		if k := t.singles(); k > 0 && t.room() < t.size {
			list = append(list, fmt.Sprintf("%s: %d single %s addresses take the room of a block of %d each", n.ID, k, t.family, t.size))
		}
		if t.room() >= t.size {
			short = short || n.field == nil || n.Busy || n.NoMore || n.field.Blocked || n.field.left[i] <= 0
		}
	}
	switch {
	case !short:
	case n.NoMore:
		list = append(list, fmt.Sprintf("%s is left alone", n.ID)+words(n.Why))
	case n.Busy:
		list = append(list, fmt.Sprintf("%s is busy with an earlier call", n.ID))
	case n.field == nil:
		list = append(list, fmt.Sprintf("%s: nothing is known of its subnet %s", n.ID, n.Subnet))
	case n.field.Blocked:
		list = append(list, fmt.Sprintf("%s: its subnet %s refused lately", n.ID, n.Subnet)+words(n.field.Why))
	default:
		list = append(list, fmt.Sprintf("%s: its subnet %s has no address left", n.ID, n.Subnet))
	}
	return list
}

// words are what was said, behind what is told of it.
func words(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// noSubnet returns why no subnet takes a new ENI.
func (l *ledger) noSubnet() []string {
	var list []string
	for _, f := range l.subnets {
		switch need := 2; {
		case !f.New:
		case f.Blocked, f.NoNew:
			list = append(list, fmt.Sprintf("%s refused lately: no new ENI there now", f.ID)+words(f.Why))
		default:
			if l.c.Mode == Burstable && !l.c.Partial {
				need = l.fullSize() + 1
			}
			list = append(list, fmt.Sprintf("%s has %d addresses left, a new ENI needs %d", f.ID, max(0, f.room()), need))
		}
	}
	if len(list) == 0 {
		return []string{"no subnet takes new ENIs now"}
	}
	return list
}
