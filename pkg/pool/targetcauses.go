package pool

import "fmt"

// TargetCauses returns why the node can't have target slots now, for status and logs:
// what keeps each ENI from getting more, and why there is no new one. It returns
// nothing when a plan gets there.
func TargetCauses(c Config, s Snapshot, target int) []Cause {
	if len(s.Families) == 0 {
		return []Cause{{Kind: CacheUnusable, Words: "the node's address families are not known"}}
	}
	l := newLedger(c, s, target)
	l.grow()
	var list []Cause
	if target > l.most {
		list = append(list, Cause{Kind: AddressLimit, Slots: target - l.most, Words: l.limitWords()})
	}
	if l.short() <= 0 {
		return list
	}
	// An ENI that is being deleted is no nic of the ledger, and takes the place of a new ENI until it
	// is gone.
	for i := range s.ENIs {
		if e := &s.ENIs[i]; e.Leaving && e.Index >= c.FirstIndex(s.Limits) {
			list = append(list, Cause{Kind: UnderWay, Object: e.ID, Words: e.ID + " is being deleted"})
		}
	}
	for _, n := range l.nics {
		list = append(list, n.causes()...)
	}
	if why := l.noMoreENIs(); why != "" {
		return append(list, Cause{Kind: ENILimit, Slots: l.short(), Words: why, Todo: l.moreENIs()})
	}
	if s.NoNew.Is() {
		return append(list, s.NoNew.keepingSlots("", l.short(), "no new ENI is asked for now"))
	}
	return append(list, l.noSubnet()...)
}

// limitWords says that the target is out of reach, and which setting or limit bounds it.
func (l *ledger) limitWords() string {
	by := fmt.Sprintf("%d ENIs for pods with %d slots each", l.c.mostCarriers(l.s.Limits), perENI(l.s.Limits, l.s.Families))
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
	return fmt.Sprintf("demand needs %d slots and the node holds %d at most: %s", l.asked, l.most, by)
}

// causes returns what keeps the ENI from its full number of slots.
func (n *nic) causes() (list []Cause) {
	told := func(k Kind, addresses int, format string, args ...any) {
		list = append(list, Cause{Kind: k, Object: n.ID, Slots: addresses, Words: n.ID + fmt.Sprintf(format, args...)})
	}
	if n.NoLink {
		told(LinkMissing, 0, ": its link %s is missing on the node", n.Device)
		return list
	}
	short := false
	for i := range n.tallies {
		t := &n.tallies[i]
		if t.lost > 0 {
			told(RoomTaken, t.lost, ": %d %s addresses that the cloud took are still pods'", t.lost, t.family)
		}
		if t.others > 0 {
			told(HeldByOthers, t.others, ": %d %s addresses are held by others", t.others, t.family)
		}
		if t.gone > 0 {
			told(RoomTaken, t.gone, ": %d %s addresses are on their way back", t.gone, t.family)
		}
		if k := t.countSingles(); k > 0 && t.room() < t.size {
			told(RoomTaken, k*(t.size-1), ": %d single %s addresses take the room of a block of %d each", k, t.family, t.size)
		}
		if t.room() >= t.size {
			short = short || n.field == nil || n.Busy || n.NoMore.Is() || n.field.Blocked.Is() || n.isSpared() || n.field.left[i] <= 0
		}
	}
	// One cause for all that is missing: the ENI's own back-off first, for only that says what the
	// cloud refused.
	missing := n.fewest(func(t tally) int { return max(0, t.room()) })
	switch {
	case !short:
	case n.NoMore.Is():
		list = append(list, n.NoMore.keepingSlots(n.ID, missing, n.ID+" refused addresses lately"))
	case n.Busy:
		told(UnderWay, missing, " is busy with an earlier call")
	case n.field == nil:
		told(NoSubnet, missing, ": nothing is known of its subnet %s", n.Subnet)
	case n.field.Blocked.Is():
		list = append(list, n.field.Blocked.keepingSlots(n.Subnet, missing, fmt.Sprintf("%s: its subnet %s refused lately", n.ID, n.Subnet)))
	case n.isSpared():
		list = append(list, Cause{Kind: SubnetFull, Object: n.Subnet, Slots: missing, Words: fmt.Sprintf("%s: others wait for what its subnet %s has left", n.ID, n.Subnet)})
	default:
		list = append(list, Cause{Kind: SubnetFull, Object: n.Subnet, Slots: missing, Words: fmt.Sprintf("%s: its subnet %s has no address left", n.ID, n.Subnet)})
	}
	return list
}

// refusal is why the subnet takes no new ENI now: that it has no addresses counts first.
func (s *Subnet) refusal() Cause {
	if s.Blocked.Is() {
		return s.Blocked
	}
	return s.NoNew
}

// NoSubnetCauses returns why no subnet takes a new ENI, nothing where one takes it. refusal tells it of one: with no cause if that takes the
// ENI, and false if it is not for new ENIs.
func NoSubnetCauses[S any](subnets []S, refusal func(S) (Cause, bool)) (list []Cause) {
	for _, s := range subnets {
		switch c, is := refusal(s); {
		case !is:
		case !c.Is():
			return nil
		default:
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		list = append(list, Cause{Kind: NoSubnet, Words: "no subnet takes the ENI that is needed"})
	}
	return list
}

// noSubnet returns why no subnet takes a new ENI.
func (l *ledger) noSubnet() []Cause {
	list := NoSubnetCauses(l.subnets, func(f *field) (Cause, bool) { return l.noENIIn(f), f.New })
	for i := range list {
		list[i].Slots = l.short()
	}
	return list
}

// noENIIn returns why the subnet takes no new ENI.
func (l *ledger) noENIIn(f *field) Cause {
	need := 2
	switch {
	case f.Blocked.Is(), f.NoNew.Is():
		return f.refusal().keepingSlots(f.ID, 0, f.ID+" refused lately: no new ENI there now")
	case f.Spared:
		return Cause{Kind: SubnetFull, Object: f.ID, Words: f.ID + ": others wait for what it has left"}
	case l.c.Mode == Burstable && !l.c.Partial: // everywhere else an ENI may begin with one slot; its primary address takes the other
		need = l.fullSize() + 1
	}
	return Cause{Kind: SubnetFull, Object: f.ID, Words: fmt.Sprintf("%s has %d addresses left, a new ENI needs %d", f.ID, max(0, f.room()), need)}
}
