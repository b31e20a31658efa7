package cloudtest_test

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/cloudtest"
	"github.com/enipool/enipool/pkg/eni"
)

// madeUp is a cloud in memory with one subnet. Its instances have few ENIs, in the
// extreme their own alone, as those of Azure, GCP and BBC; and pods' addresses may come
// from a range of their own, as GCP's alias ranges and Azure's pod subnets.
type madeUp struct {
	mu     sync.Mutex
	like   likeness
	nodes  map[string][]*cloud.Interface
	made   int // ENIs so far
	others int // addresses that others took
	faults map[string][]cloudtest.Failure
	before []cloud.Interface // what a mutant's last Interfaces showed
}

// likeness is what a made-up cloud is like.
type likeness struct {
	enis  int    // an instance may have
	pods  string // the range of pods' addresses
	wrong string // what a mutant does, "" for none
}

const (
	madeUpSubnet = "10.0.0.0/24"
	ownRange     = "10.9.0.0/26"
)

var madeUpGateway = netip.MustParseAddr("10.0.0.1")

// newMadeUp makes a cloud of nodes n1 and n2.
func newMadeUp(l likeness) *madeUp {
	m := &madeUp{like: l, nodes: map[string][]*cloud.Interface{}, faults: map[string][]cloudtest.Failure{}}
	for _, name := range []string{"n1", "n2"} {
		m.nodes[name] = []*cloud.Interface{m.nic()}
	}
	return m
}

// nic makes an ENI with nothing but its primary address.
func (m *madeUp) nic() *cloud.Interface {
	m.made++
	subnet := netip.MustParsePrefix(madeUpSubnet)
	primary := m.take(subnet, 1)[0]
	nic := &cloud.Interface{ID: "nic-" + string(rune('a'+m.made)), MAC: "02:00:00:00:00:" + string([]rune{'a', rune('0' + m.made%10)}),
		Subnet: "the-subnet", V4: eni.Net{Primary: netip.PrefixFrom(primary, subnet.Bits()), Gateway: madeUpGateway},
		Created: time.Date(2026, 1, 2, 3, 4, m.made, 0, time.UTC)}
	if m.like.pods != madeUpSubnet {
		nic.Pods = []netip.Prefix{netip.MustParsePrefix(m.like.pods)}
	}
	return nic
}

func (m *madeUp) all() (nics []*cloud.Interface) {
	for _, list := range m.nodes {
		nics = append(nics, list...)
	}
	return nics
}

// take returns n addresses of a range that nobody has, from its begin.
func (m *madeUp) take(from netip.Prefix, n int) (addrs []netip.Addr) {
	taken := map[netip.Addr]bool{madeUpGateway: true}
	for _, nic := range m.all() {
		taken[nic.V4.Primary.Addr()] = true
		for _, a := range nic.Addresses {
			taken[a] = true
		}
	}
	for a := from.Addr().Next(); len(addrs) < n && from.Contains(a); a = a.Next() {
		if !taken[a] {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// free is how many addresses are left where pods' come from.
func (m *madeUp) free() int {
	left := 1<<(32-netip.MustParsePrefix(m.like.pods).Bits()) - 2 - m.others
	for _, nic := range m.all() {
		left -= len(nic.Addresses)
		if m.like.pods == madeUpSubnet || m.like.wrong == "counts primaries where pods' addresses are" {
			left--
		}
	}
	return left
}

// leave lets others take all but so many addresses.
func (m *madeUp) leave(_ string, free int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others += m.free() - free
}

func (m *madeUp) inject(method string, f cloudtest.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[method] = append(m.faults[method], f)
}

// detach takes an ENI off its node behind its back.
func (m *madeUp) detach(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, nic := range m.all() {
		if nic.ID == id {
			nic.Index = -1
		}
	}
}

// move takes an ENI off its node and gives it to n2.
func (m *madeUp) move(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n1 := instance{m, "n1"}
	nic := n1.byID(id)
	m.nodes["n1"] = slices.DeleteFunc(m.nodes["n1"], func(o *cloud.Interface) bool { return o == nic })
	nic.Index, nic.Ours, nic.Token = len(m.nodes["n2"]), false, ""
	m.nodes["n2"] = append(m.nodes["n2"], nic)
}

// extent is how much of a call is done.
type extent uint8

const (
	whole    extent = iota
	half            // of the addresses
	created         // the ENI is
	attached        // and has no addresses yet
)

// instance is the Cloud of a node.
type instance struct {
	*madeUp
	name string
}

// call is how each method goes: under the lock, with what is to go wrong.
func (i instance) call(ctx context.Context, method, object string, do func(extent) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	failed := func(kind error) error { return &cloud.Error{Op: method, Object: object, Kind: kind} }
	if ctx.Err() != nil {
		return failed(cloud.ErrUnavailable)
	}
	next := i.faults[method]
	if len(next) == 0 {
		if err := do(whole); err != nil {
			return failed(err)
		}
		return nil
	}
	i.faults[method] = next[1:]
	switch next[0] {
	case cloudtest.Throttled:
		return failed(cloud.ErrThrottled)
	case cloudtest.Forbidden:
		return failed(cloud.ErrForbidden)
	case cloudtest.Unavailable:
		if i.like.wrong == "does what it says it could not" {
			_ = do(whole)
		}
		return failed(cloud.ErrUnavailable)
	case cloudtest.Late:
		time.AfterFunc(time.Millisecond, func() { i.mu.Lock(); defer i.mu.Unlock(); _ = do(whole) })
	default:
		_ = do(map[cloudtest.Failure]extent{cloudtest.Partial: half, cloudtest.LostAfterCreate: created, cloudtest.LostAfterAttach: attached}[next[0]])
		if i.like.wrong == "assigns again after a lost answer" && method == "AssignAddresses" {
			_ = do(whole)
		}
	}
	return failed(cloud.ErrUnknown)
}

// find returns the first of the node's ENIs that is so, nil if none is.
func (i instance) find(is func(*cloud.Interface) bool) *cloud.Interface {
	if at := slices.IndexFunc(i.nodes[i.name], is); at >= 0 {
		return i.nodes[i.name][at]
	}
	return nil
}

func (i instance) byID(id string) *cloud.Interface {
	if i.like.wrong == "changes other nodes' ENIs" {
		all := i.all()
		if at := slices.IndexFunc(all, func(nic *cloud.Interface) bool { return nic.ID == id }); at >= 0 {
			return all[at]
		}
	}
	return i.find(func(nic *cloud.Interface) bool { return nic.ID == id })
}
