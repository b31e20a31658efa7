package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Options are what an account is like. The zero Options are a cloud in memory
// that answers at once, always and with the newest state.
type Options struct {
	Network *Network      // carries everything out; nil: it is in memory alone
	MTU     int           // of ENIs, in bytes; 0 is 9001
	MaxENIs int           // in the account, the nodes' own among them; 0 is no limit
	Reuse   Reuse         // which of a subnet's free addresses comes next
	Lag     time.Duration // what Interfaces and Subnets show is at most so old
	Seed    uint64        // of jitter, of lag and of what SetFaults leaves to chance
	Clock   Clock         // nil: the machine's

	Latency              map[string]Latency // by method; "" is for those without an entry
	Mutating, Describing Bucket             // how many calls pass
	Prices               map[string][]Price // by method: requests to the cloud's own API, and Mutating and Describing are of each kind of those
	Buckets              map[string]Bucket  // of kinds of requests that have other ones
}

// Latency is how long calls take: Base and up to Jitter more.
type Latency struct{ Base, Jitter time.Duration }

// defaultMTU is that of ENIs in real clouds, in bytes.
const defaultMTU = 9001

// Account is an account of a cloud with a VPC in it, its ENIs and their
// addresses: the whole truth, and what nodes get to see of it. Its methods may be
// called from several goroutines. It starts none of its own, and without a
// Network it does no I/O, so that it works in testing/synctest. Where calls come
// from several goroutines, the Seed alone does not make a run repeatable.
type Account struct {
	o Options

	mu       sync.Mutex
	now      time.Time // at which what happens under the lock happens
	rng      *rand.Rand
	subnets  map[string]*subnet
	machines map[string]*machine
	enis     map[string]*nic
	owner    map[netip.Addr]*nic // of every address that is on an ENI
	made     int                 // ENIs so far; ids are not used again
	late     []lateCall          // what has its effect later, the soonest first
	faults   faults
	calls    map[string]int
	mutating Meter
	describe Meter
	tolls    tolls
}

// NewAccount makes an account without subnets and nodes. With a Network, that
// must be a new one.
func NewAccount(o Options) *Account {
	if o.MTU == 0 {
		o.MTU = defaultMTU
	}
	if o.Clock == nil {
		o.Clock = Wall{}
	}
	return &Account{
		o:        o,
		rng:      rand.New(rand.NewPCG(o.Seed, 0)),
		subnets:  map[string]*subnet{},
		machines: map[string]*machine{},
		enis:     map[string]*nic{},
		owner:    map[netip.Addr]*nic{},
		faults:   faults{next: map[string][]Fault{}},
		calls:    map[string]int{},
		mutating: Meter{Bucket: o.Mutating},
		describe: Meter{Bucket: o.Describing},
	}
}

// lock is how every method begins. What was to have its effect by now has it.
func (a *Account) lock() {
	a.mu.Lock()
	now := a.o.Clock.Now()
	for len(a.late) > 0 && !a.late[0].At.After(now) {
		l := a.late[0]
		a.late = a.late[1:]
		a.now = l.At
		a.perform(l.Request, Fault{}) // nobody is there to hear of its error
	}
	a.now = now
}

// machine is a node and what it has.
type machine struct {
	Machine
	enis []*nic                     // in the order of their creation
	seen history[[]cloud.Interface] // what Interfaces showed
}

// Machine describes a node.
type Machine struct {
	Name   string
	Limits eni.Limits
	Subnet string   // of its own ENI
	New    []string // subnets that new ENIs may lie in, nil for every one
}

// nic is an ENI. Its Addresses are never changed in place: who has the slice may
// keep it.
type nic struct {
	cloud.Interface
	Node   string
	Ready  bool        // CreateInterface is through with it
	Blocks []delegated // of its Addresses: those that came as blocks
}

// AddSubnet adds a subnet to the VPC.
func (a *Account) AddSubnet(s Subnet) error {
	a.lock()
	defer a.mu.Unlock()
	made, err := newSubnet(s)
	if err != nil {
		return fmt.Errorf("add subnet %s: %w", s.ID, err)
	}
	for _, other := range a.subnets {
		if other.ID == s.ID || overlap(other.V4, s.V4) || overlap(other.V6, s.V6) {
			return fmt.Errorf("add subnet %s: it overlaps subnet %s", s.ID, other.ID)
		}
	}
	for _, part := range made.parts() {
		if a.o.Network != nil {
			if err := a.o.Network.AddSubnet(part); err != nil {
				return err
			}
		}
	}
	a.subnets[s.ID] = made
	a.changedSubnet(made)
	return nil
}

func overlap(a, b netip.Prefix) bool { return a.IsValid() && b.IsValid() && a.Overlaps(b) }

// AddNode adds a node with its own ENI, at index 0. With a Network the node is a
// namespace of it, and its system has configured that ENI.
func (a *Account) AddNode(m Machine) (*Node, error) {
	a.lock()
	defer a.mu.Unlock()
	if err := a.addNode(m); err != nil {
		return nil, fmt.Errorf("add node %s: %w", m.Name, err)
	}
	return a.Node(m.Name), nil
}

func (a *Account) addNode(m Machine) error {
	if err := validName(m.Name); err != nil {
		return err
	}
	if err := validLimits(m.Limits); err != nil {
		return err
	}
	if _, ok := a.machines[m.Name]; ok {
		return fmt.Errorf("the account has one of that name")
	}
	for _, id := range append(slices.Clone(m.New), m.Subnet) {
		if a.subnets[id] == nil {
			return fmt.Errorf("there is no subnet %q", id)
		}
	}
	made := &machine{Machine: m}
	made.New = slices.Clone(m.New)
	n, err := a.newENI(made, a.subnets[m.Subnet])
	if err != nil {
		return err
	}
	n.Index, n.Ready = 0, true
	if err := a.boot(made, n); err != nil {
		a.giveBack(n)
		return err
	}
	a.machines[m.Name] = made
	a.add(n)
	return nil
}

func validLimits(l eni.Limits) error {
	if l.ENIs < 1 || l.ENIs > eni.MaxIndex+1 || l.V4 < 0 || l.V6 < 0 || l.V4+l.V6 == 0 {
		return fmt.Errorf("limits of %d ENIs with %d IPv4 and %d IPv6 addresses: must be 1 to %d ENIs with an address at least",
			l.ENIs, l.V4, l.V6, eni.MaxIndex+1)
	}
	return errors.Join(validBlock(eni.IPv4, l.V4Block), validBlock(eni.IPv6, l.V6Block))
}

// may tells whether new ENIs of the node may lie in the subnet.
func (m *machine) may(subnet string) bool { return m.New == nil || slices.Contains(m.New, subnet) }

// SetForeign lets others take n addresses of the subnet, of each family that it
// has; where fewer are left, all that are.
func (a *Account) SetForeign(subnet string, n int) error {
	a.lock()
	defer a.mu.Unlock()
	s := a.subnets[subnet]
	if s == nil {
		return fmt.Errorf("set foreign use: there is no subnet %q", subnet)
	}
	for _, f := range s.families() {
		p := s.pool(f)
		p.Foreign = max(0, min(n, p.Foreign+p.free()))
	}
	a.changedSubnet(s)
	return nil
}
