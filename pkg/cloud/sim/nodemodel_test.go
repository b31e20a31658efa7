package sim

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// model is what an account should be, in plain notes: no order of reuse, no
// history, addresses only as sets. A call is predicted on a copy of it; fresh says
// how many addresses, whichever they are, come to which ENI.
type model struct {
	maxENIs int
	limits  eni.Limits
	room    map[string]int // IPv4 addresses of the subnet that can be given out
	foreign map[string]int
	dual    map[string]bool // the subnet has endless IPv6
	enis    []modelENI      // in the order of their creation
}

type modelENI struct {
	id     string // "" for one that the call makes
	node   string
	subnet string
	token  string // "" for the node's own
	index  int
	ready  bool
	addrs  []netip.Addr // secondary ones that are known, sorted
	fresh4 int          // and those that the call brings
	fresh6 int
}

func (m model) clone() model {
	m.room, m.foreign = maps.Clone(m.room), maps.Clone(m.foreign)
	m.enis = slices.Clone(m.enis)
	return m
}

func (m *model) find(is func(modelENI) bool) *modelENI {
	if at := slices.IndexFunc(m.enis, is); at >= 0 {
		return &m.enis[at]
	}
	return nil
}

func (m *model) remove(gone *modelENI) {
	node, id, token := gone.node, gone.id, gone.token
	m.enis = slices.DeleteFunc(m.enis, func(e modelENI) bool { return e.node == node && e.id == id && e.token == token })
}

// count is how many secondary addresses of the family the ENI has.
func (e modelENI) count(f eni.Family) int {
	count := e.fresh4
	if f == eni.IPv6 {
		count = e.fresh6
	}
	for _, a := range e.addrs {
		if eni.FamilyOf(a) == f {
			count++
		}
	}
	return count
}

// free is how many IPv4 addresses are left.
func (m *model) free(subnet string) int {
	free := m.room[subnet] - m.foreign[subnet]
	for _, e := range m.enis {
		if e.subnet == subnet {
			free -= 1 + e.count(eni.IPv4)
		}
	}
	return free
}

// put brings the ENI up to n addresses, and says why not all.
func (m *model) put(e *modelENI, f eni.Family, n int) error {
	if f == eni.IPv6 && !m.dual[e.subnet] {
		return cloud.ErrSubnetFull
	}
	room := m.limits.PerENI(f) - e.count(f)
	left := n
	if f == eni.IPv4 {
		left = m.free(e.subnet)
	}
	got := min(n, room, left)
	if f == eni.IPv4 {
		e.fresh4 += got
	} else {
		e.fresh6 += got
	}
	switch {
	case got == n:
		return nil
	case got == room:
		return cloud.ErrLimit
	}
	return cloud.ErrSubnetFull
}

// create is CreateInterface up to the place where its answer is lost.
func (m *model) create(r request, at Place) error {
	w := r.Create
	e := m.find(func(e modelENI) bool { return e.node == r.Node && e.token == w.Token })
	if e == nil {
		switch {
		case m.room[w.Subnet] == 0:
			return cloud.ErrNotFound
		case w.V4 > m.limits.PerENI(eni.IPv4) || w.V6 > m.limits.PerENI(eni.IPv6):
			return cloud.ErrLimit
		case len(m.enis) >= m.maxENIs:
			return cloud.ErrLimit
		case m.free(w.Subnet) == 0:
			return cloud.ErrSubnetFull
		}
		m.enis = append(m.enis, modelENI{node: r.Node, subnet: w.Subnet, token: w.Token, index: -1})
		e = &m.enis[len(m.enis)-1]
	}
	if at == AfterCreate {
		return cloud.ErrUnknown
	}
	err := m.finish(e, w, at)
	if err != nil && err != cloud.ErrUnknown {
		m.remove(e)
	}
	if at == AfterEffect {
		return cloud.ErrUnknown
	}
	return err
}

func (m *model) finish(e *modelENI, w cloud.Create, at Place) error {
	for i := 1; e.index < 0; i++ {
		if i == m.limits.ENIs {
			return cloud.ErrLimit
		}
		if m.find(func(o modelENI) bool { return o.node == e.node && o.index == i }) == nil {
			e.index = i
		}
	}
	if at == AfterAttach {
		return cloud.ErrUnknown
	}
	if e.ready {
		return nil
	}
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		n := map[eni.Family]int{eni.IPv4: w.V4, eni.IPv6: w.V6}[f] - e.count(f)
		if n <= 0 {
			continue
		}
		if err := m.put(e, f, n); err == cloud.ErrLimit || err != nil && e.count(f) == 0 {
			return err
		}
	}
	e.ready = true
	return nil
}

// assign is AssignAddresses.
func (m *model) assign(r request, f Fault) error {
	e := m.find(func(e modelENI) bool { return e.id == r.ENI && e.node == r.Node && e.index >= 0 })
	if e == nil {
		return cloud.ErrNotFound
	}
	n := r.Count
	switch {
	case f.Partial && f.Err == nil:
		n = (n + 1) / 2
	case f.Partial:
		n /= 2
	}
	if n > 0 {
		if err := m.put(e, r.Family, n); err != nil {
			return err
		}
	}
	if f.Partial {
		return f.Err
	}
	return nil
}

// unassign is UnassignAddresses.
func (m *model) unassign(r request, f Fault) error {
	addrs := r.Addresses
	var err error
	if f.Partial {
		addrs, err = addrs[:len(addrs)/2], f.Err
		if err == nil {
			addrs, err = r.Addresses[:len(r.Addresses)/2], cloud.ErrUnknown
		}
	}
	e := m.find(func(e modelENI) bool { return e.id == r.ENI && e.node == r.Node })
	if e == nil {
		return nil
	}
	e.addrs = slices.DeleteFunc(slices.Clone(e.addrs), func(a netip.Addr) bool { return slices.Contains(addrs, a) })
	return err
}

// delete is DeleteInterface.
func (m *model) delete(r request) error {
	e := m.find(func(e modelENI) bool { return e.id == r.ENI })
	switch {
	case e == nil:
		return nil
	case e.token == "" || e.node != r.Node:
		return cloud.ErrForbidden
	}
	m.remove(e)
	return nil
}

// predict changes the model as the call changes the account, and returns the kind
// of its error, nil for none.
func (m *model) predict(r request, f Fault) error {
	if f.Err != nil && !f.Partial {
		return f.Err
	}
	if f.Later > 0 {
		return cloud.ErrUnknown
	}
	var err error
	switch r.Method {
	case createInterface:
		return m.create(r, f.Lost)
	case assignAddresses:
		err = m.assign(r, f)
	case unassignAddresses:
		err = m.unassign(r, f)
	case deleteInterface:
		err = m.delete(r)
	}
	if f.Lost != Nowhere {
		return cloud.ErrUnknown
	}
	return err
}
