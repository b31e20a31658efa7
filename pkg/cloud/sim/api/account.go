package api

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Options are what an account is like. The zero Options are one in memory that
// answers at once, always and with the newest state.
type Options struct {
	Region string // "" is region-1
	Owner  string // the account's number, "" is 111122223333
	VPC    VPC    // an ID of "" is made up

	Network *sim.Network // carries everything out; nil: it is in memory alone
	MTU     int          // of ENIs, in bytes; 0 is 9001
	Clock   sim.Clock    // nil: the machine's
	Seed    uint64       // of jitter, lag and chance
	Reuse   sim.Reuse    // which of a subnet's free addresses comes next
	// NewID makes the n-th id of a kind: "vpc", "eni", "eni-attach". nil makes
	// those of EC2, such as eni-0123456789abcdef0.
	NewID func(kind string, n int) string

	MaxENIs      int // in the account, 0 is no limit
	MaxAddresses int // slots a family of an ENI that is not attached, 0 is 50

	Lag                                time.Duration          // what a describing call shows is at most so old
	CreateTime, AttachTime, DetachTime time.Duration          // pending, attaching, detaching
	Latency                            map[string]sim.Latency // by action, "" for those without an entry

	// Buckets are how many calls pass: by action, else by Mutating and Describing.
	// A call may name one more that it also counts in. What has none always passes.
	Buckets map[string]sim.Bucket
}

// The buckets of actions that have none of their own.
const (
	Mutating   = "mutating"
	Describing = "describing"
)

// Account is an account of a cloud with its VPC: the whole truth, and what callers
// get to see of it. Its methods may be called from several goroutines.
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
	nics     []*nic // in the order of creation, with those deleted that may still be shown
	byID     map[string]*nic
	made     map[string]int // ids so far, by kind
	events   []event        // what is to happen, the soonest first
	tokens   map[string]told
	faults   faults
	meters   map[string]*sim.Meter
	calls    map[string]int
	keep     time.Duration // how old a state may be that is asked for
	lifted   bool          // limits don't hold
	broken   []error       // what the Network failed to do when nobody waited for it
}

// NewAccount makes an account with a VPC and nothing in it. With a Network, that
// must be a new one.
func NewAccount(o Options) *Account {
	o.Region = cmp.Or(o.Region, "region-1")
	o.Owner = cmp.Or(o.Owner, "111122223333")
	o.MTU = cmp.Or(o.MTU, 9001)
	o.MaxAddresses = cmp.Or(o.MaxAddresses, 50)
	if o.Clock == nil {
		o.Clock = sim.Wall{}
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	a := &Account{
		o:        o,
		rng:      rand.New(rand.NewPCG(o.Seed, 0)),
		vpc:      o.VPC,
		subnets:  map[string]*subnet{},
		groups:   map[string]*Group{},
		types:    map[string]Type{},
		machines: map[string]*machine{},
		byID:     map[string]*nic{},
		made:     map[string]int{},
		tokens:   map[string]told{},
		faults:   faults{next: map[string][]Fault{}},
		meters:   map[string]*sim.Meter{},
		calls:    map[string]int{},
		keep:     o.Lag,
	}
	a.vpc.ID = cmp.Or(a.vpc.ID, a.id("vpc"))
	return a
}

// Options returns what the account was made with, its defaults filled in.
func (a *Account) Options() Options { return a.o }

// Clock returns the account's clock.
func (a *Account) Clock() sim.Clock { return a.o.Clock }

// id makes a new id of the kind.
func (a *Account) id(kind string) string {
	a.made[kind]++
	return a.o.NewID(kind, a.made[kind])
}

// newID makes an id as EC2 does, the same ones in each run.
func newID(kind string, n int) string {
	return fmt.Sprintf("%s-0%016x", kind, uint64(n)*0x9e3779b97f4a7c15)
}

// event is something that is to happen.
type event struct {
	at time.Time
	do func()
}

// later lets something happen when d has passed, at once if that is nothing.
func (a *Account) later(d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	a.events = append(a.events, event{a.now.Add(d), do})
	slices.SortStableFunc(a.events, func(x, y event) int { return x.at.Compare(y.at) })
}

// lock is how every method begins. What was to happen by now has happened.
func (a *Account) lock() {
	a.mu.Lock()
	now := a.o.Clock.Now()
	for len(a.events) > 0 && !a.events[0].at.After(now) {
		e := a.events[0]
		a.events = a.events[1:]
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

// Remember makes the account keep at least so much of its history for View.
func (a *Account) Remember(age time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.keep = max(a.keep, age)
}

// SetLag sets how old the answers of describing calls may be from now on. They
// show nothing from before what was remembered until now.
func (a *Account) SetLag(d time.Duration) {
	a.lock()
	defer a.mu.Unlock()
	a.o.Lag = d
	a.keep = max(a.keep, d)
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
