package sim

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// history is what something was, the oldest first. It goes back as far as Lag.
type history[T any] []version[T]

type version[T any] struct {
	at    time.Time
	value T
}

// add notes what it is from at on, and forgets what no answer shows any more.
func (h *history[T]) add(at time.Time, value T, lag time.Duration) {
	if last := len(*h) - 1; last >= 0 && !(*h)[last].at.Before(at) {
		(*h)[last].value = value
		return
	}
	*h = append((*h)[h.find(at.Add(-lag)):], version[T]{at, value})
}

// find returns the index of what it was at t, 0 if that is not known.
func (h history[T]) find(t time.Time) int {
	return max(0, sort.Search(len(h), func(i int) bool { return h[i].at.After(t) })-1)
}

// asOf returns what it was at t, or the oldest that is known.
func (h history[T]) asOf(t time.Time) T {
	return h[h.find(t)].value
}

// SetLag sets how old the answers of Interfaces and Subnets may be from now on.
// They show nothing from before the Lag that there was.
func (a *Account) SetLag(d time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.o.Lag = d
}

// changed notes that the ENI, and with it its node and subnet, is not what it was.
func (a *Account) changed(n *nic) {
	m := a.machines[n.Node]
	shown := make([]cloud.Interface, len(m.enis))
	for i, n := range m.enis {
		shown[i] = n.Interface
	}
	m.seen.add(a.now, shown, a.o.Lag)
	a.changedSubnet(a.subnets[n.Subnet])
}

func (a *Account) changedSubnet(s *subnet) { s.seen.add(a.now, s.free(), a.o.Lag) }

// then is the time of the state that an answer shows.
func (a *Account) then() time.Time { return a.now.Add(-a.upTo(a.o.Lag)) }

// interfaces is Interfaces.
func (a *Account) interfaces(m *machine) []cloud.Interface {
	shown := slices.Clone(m.seen.asOf(a.then()))
	for i := range shown {
		shown[i].Addresses = slices.Clone(shown[i].Addresses)
	}
	return shown
}

// subnetsOf is Subnets.
func (a *Account) subnetsOf(m *machine) []cloud.Subnet {
	then := a.then()
	mine := m.seen.asOf(then)
	var list []cloud.Subnet
	for _, s := range a.subnets {
		lies := slices.ContainsFunc(mine, func(i cloud.Interface) bool { return i.Subnet == s.ID })
		if m.may(s.ID) || lies {
			list = append(list, s.view(s.seen.asOf(then), m.may(s.ID)))
		}
	}
	slices.SortFunc(list, func(a, b cloud.Subnet) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// shown is the ENI as a call returns it.
func (n *nic) shown() cloud.Interface {
	i := n.Interface
	i.Addresses = slices.Clone(i.Addresses)
	return i
}
