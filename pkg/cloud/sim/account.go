package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"
)

// Options are what an account is like. The zero Options are one in memory that
// answers at once, always and with the newest state.
type Options struct {
	Region string // "" is region-1
	Owner  string // the account's number, "" is 111122223333
	VPC    VPC    // an ID of "" is made up

	Network *Network // carries everything out; nil: it is in memory alone
	MTU     int      // of ENIs, in bytes; 0 is 9001
	Clock   Clock    // nil: the machine's
	Seed    uint64   // of jitter, lag and chance
	Reuse   Reuse    // which of a subnet's free addresses comes next
	// NewID makes the n-th id of a kind: "vpc", "eni", "eni-attach". nil numbers them,
	// such as eni-00000001.
	NewID func(kind string, n int) string

	MaxENIs      int     // in the account, the nodes' own among them; 0 is no limit
	MaxAddresses int     // slots a family of an ENI that is not attached, 0 is 50
	Reserve      Reserve // of subnets that say nothing; zero: the network's and IPv4's broadcast address
	BlockV4      int     // bits of a delegated prefix, 0 is 28
	BlockV6      int     // 0 is 80

	Lag                                time.Duration      // what a describing call shows is at most so old
	CreateTime, AttachTime, DetachTime time.Duration      // pending, attaching, detaching
	Latency                            map[string]Latency // by action, "" for those without an entry

	// How many calls pass: by action where Buckets have one, else by Mutating and
	// Describing. A call may name one more that it also counts in.
	Mutating, Describing Bucket
	Buckets              map[string]Bucket
}

// Latency is how long calls take: Base and up to Jitter more.
type Latency struct{ Base, Jitter time.Duration }

// defaultRegion is that of accounts whose Options name none.
const defaultRegion = "region-1"

// defaultMTU is that of ENIs in real clouds, in bytes.
const defaultMTU = 9001

// Account is an account of a cloud with its VPC: the whole truth, and what callers
// get to see of it. Its methods may be called from several goroutines. It starts none of
// its own, and without a Network it does no I/O, so that it works in testing/synctest:
// what is to happen later has happened when the next call comes. Where calls come from
// several goroutines, the Seed alone does not make a run repeatable.
type Account struct {
	o Options

	mu       sync.Mutex
	now      time.Time // at which what happens under the lock happens
	rng      *rand.Rand
	vpc      VPC
	subnets  map[string]*subnet
	groups   map[string]*Group
	types    map[string]Type
	machines map[string]*machine
	shelf
	made   map[string]int // ids so far, by kind; they are not used again
	events []event        // what is to happen, the soonest first
	tokens map[string]told
	asked  int // tokens that its nodes have made up
	faults faults
	traffic
	keep   time.Duration // how old a state may be that is asked for
	lifted bool          // limits don't hold
	broken []error       // what the Network failed to do when nobody waited for it
	nodes  nodes
}

// NewAccount makes an account with a VPC and nothing in it. With a Network, that
// must be a new one.
func NewAccount(o Options) *Account {
	o.Region = cmp.Or(o.Region, defaultRegion)
	o.Owner = cmp.Or(o.Owner, "111122223333")
	o.MTU = cmp.Or(o.MTU, defaultMTU)
	o.MaxAddresses = cmp.Or(o.MaxAddresses, 50)
	if o.Clock == nil {
		o.Clock = Wall{}
	}
	if o.NewID == nil {
		o.NewID = func(kind string, n int) string { return fmt.Sprintf("%s-%08x", kind, n) }
	}
	a := &Account{
		o:        o,
		rng:      rand.New(rand.NewPCG(o.Seed, 0)),
		vpc:      o.VPC,
		subnets:  map[string]*subnet{},
		groups:   map[string]*Group{},
		types:    map[string]Type{},
		machines: map[string]*machine{},
		shelf:    shelf{byID: map[string]*nic{}, places: map[string]*nic{}, tagged: map[tag][]*nic{}},
		made:     map[string]int{},
		tokens:   map[string]told{},
		faults:   faults{next: map[string][]Fault{}},
		traffic:  traffic{meters: map[string]*Meter{}, calls: map[string]int{}},
		keep:     o.Lag,
		nodes:    nodes{machines: map[string]Machine{}},
	}
	a.vpc.ID = cmp.Or(a.vpc.ID, a.id("vpc"))
	return a
}

// Options returns what the account was made with, its defaults filled in.
func (a *Account) Options() Options { return a.o }

// Clock returns the account's clock.
func (a *Account) Clock() Clock { return a.o.Clock }

// nextID is the id that id will make.
func (a *Account) nextID(kind string) string { return a.o.NewID(kind, a.made[kind]+1) }

// id makes a new id of the kind.
func (a *Account) id(kind string) string {
	id := a.nextID(kind)
	a.made[kind]++
	return id
}

// EC2ID makes ids as EC2 does, such as eni-0123456789abcdef0, the same ones in each run.
func EC2ID(kind string, n int) string {
	return fmt.Sprintf("%s-0%016x", kind, uint64(n)*0x9e3779b97f4a7c15)
}

// event is something that is to happen.
type event struct {
	at   time.Time
	do   func()
	what happening // to save it
}

// later lets something happen when d has passed, at once if that is nothing.
func (a *Account) later(d time.Duration, what happening, do func()) {
	if d <= 0 {
		do()
		return
	}
	a.at(a.now.Add(d), what, do)
}

func (a *Account) at(t time.Time, what happening, do func()) {
	after := sort.Search(len(a.events), func(i int) bool { return a.events[i].at.After(t) })
	a.events = slices.Insert(a.events, after, event{t, do, what})
}

// lock is how every method begins. What was to happen by now has happened.
func (a *Account) lock() {
	a.mu.Lock()
	now := a.o.Clock.Now()
	for len(a.events) > 0 && !a.events[0].at.After(now) {
		e := a.events[0]
		a.events = slices.Delete(a.events, 0, 1)
		a.now = e.at
		e.do()
	}
	a.now = now
}

// Update changes the account behind its callers' backs. What f did before it
// returned an error stays done.
func (a *Account) Update(f func(*Tx) error) error {
	a.lock()
	defer a.mu.Unlock()
	return f(&Tx{a: a, at: a.now})
}

// View reads the account as it was some time ago; 0 is the truth. See Remember.
func (a *Account) View(age time.Duration, f func(*Tx)) {
	a.lock()
	defer a.mu.Unlock()
	f(&Tx{a: a, at: a.now.Add(-age), past: age > 0})
}

// SetTimes sets how long ENIs are pending, attaching and detaching from now on.
func (a *Account) SetTimes(create, attach, detach time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.o.CreateTime, a.o.AttachTime, a.o.DetachTime = create, attach, detach
}

// LiftLimits lets instances and ENIs carry any number, as emulators do.
func (a *Account) LiftLimits() {
	a.lock()
	defer a.mu.Unlock()
	a.lifted = true
}

// Calls returns how many calls of each action there were, failed ones too.
func (a *Account) Calls() map[string]int {
	a.lock()
	defer a.mu.Unlock()
	return maps.Clone(a.calls)
}
