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

// Options describe an account. The zero Options are an account in memory that always answers,
// at once and with the newest state.
type Options struct {
	Region string // "" is region-1
	Owner  string // the account's number, "" is 111122223333
	VPC    VPC    // an ID of "" is made up

	Network *Network // in which ENIs are real links; nil: the account is only in memory
	MTU     int      // of ENIs, in bytes; 0 is 9001
	Clock   Clock    // nil: the machine's
	Seed    uint64   // of jitter, lag and chance
	Reuse   Reuse    // which of a subnet's free addresses comes next
	// NewID makes the n-th id of a kind: "vpc", "eni", "eni-attach". nil numbers them,
	// such as eni-00000001.
	NewID func(kind string, n int) string

	MaxENIs      int     // in the account, primary ones included; 0 is no limit
	MaxAddresses int     // slots a family of an ENI that is not attached, 0 is 50
	Reserve      Reserve // of subnets that say nothing; zero: the network's and IPv4's broadcast address
	BlockV4      int     // bits of a delegated prefix, 0 is 28
	BlockV6      int     // 0 is 80

	Lag                                time.Duration      // what a describing call shows is at most so old
	CreateTime, AttachTime, DetachTime time.Duration      // pending, attaching, detaching
	Latency                            map[string]Latency // by action, "" for those without an entry

	// How many calls pass: an action that Buckets has counts there, others in Mutating or
	// Describing. A Call may name one more of Buckets that it also counts in.
	Mutating, Describing Bucket
	Buckets              map[string]Bucket
}

// Latency is how long calls take: Base and up to Jitter more.
type Latency struct{ Base, Jitter time.Duration }

// defaultRegion is that of accounts whose Options name none.
const defaultRegion = "region-1"

// defaultMTU is that of ENIs in real clouds, in bytes.
const defaultMTU = 9001

// Account is an account of a cloud with its VPC: the truth, and what callers get to see of it.
// Its methods may be called from several goroutines. It starts none of its own, and without a
// Network it does no I/O, so that it works in testing/synctest: what is to happen later happens
// at the beginning of the next call after its time. If calls come from several goroutines, the
// Seed does not make a run repeatable.
type Account struct {
	o Options

	mu      sync.Mutex
	now     time.Time // at which what happens under the lock happens
	rng     *rand.Rand
	vpc     VPC
	subnets map[string]*subnet
	groups  map[string]*Group
	types   map[string]Type
	vms     map[string]*vm
	nicIndex
	made   map[string]int // ids so far, by kind; they are not used again
	events []event        // what is to happen, the soonest first
	tokens map[string]tokenAnswer
	asked  int // tokens that its nodes have made up
	faults faults
	traffic
	historyFor time.Duration // how old a state may be that is asked for
	lifted     bool          // limits don't hold
	broken     []error       // what the Network failed to do when nobody waited for it
	nodes      nodes
}

// NewAccount makes an account with a VPC and nothing in it. With a Network, that
// must be a new one.
func NewAccount(options Options) *Account {
	options.Region = cmp.Or(options.Region, defaultRegion)
	options.Owner = cmp.Or(options.Owner, "111122223333")
	options.MTU = cmp.Or(options.MTU, defaultMTU)
	options.MaxAddresses = cmp.Or(options.MaxAddresses, 50)
	if options.Clock == nil {
		options.Clock = Wall{}
	}
	if options.NewID == nil {
		options.NewID = func(kind string, n int) string { return fmt.Sprintf("%s-%08x", kind, n) }
	}
	account := &Account{
		o:          options,
		rng:        rand.New(rand.NewPCG(options.Seed, 0)),
		vpc:        options.VPC,
		subnets:    map[string]*subnet{},
		groups:     map[string]*Group{},
		types:      map[string]Type{},
		vms:        map[string]*vm{},
		nicIndex:   nicIndex{byID: map[string]*nic{}, places: map[string]*nic{}, tagged: map[tag][]*nic{}},
		made:       map[string]int{},
		tokens:     map[string]tokenAnswer{},
		faults:     faults{next: map[string][]Fault{}},
		traffic:    traffic{meters: map[string]*Meter{}, calls: map[string]int{}},
		historyFor: options.Lag,
		nodes:      nodes{byName: map[string]NodeSpec{}},
	}
	account.vpc.ID = cmp.Or(account.vpc.ID, account.newID("vpc"))
	return account
}

// Options returns what the account was made with, its defaults filled in.
func (a *Account) Options() Options { return a.o }

// Clock returns the account's clock.
func (a *Account) Clock() Clock { return a.o.Clock }

// nextID is the id that newID will make next.
func (a *Account) nextID(kind string) string { return a.o.NewID(kind, a.made[kind]+1) }

// newID makes a new id of the kind.
func (a *Account) newID(kind string) string {
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

// scheduleIn lets something happen when d has passed, at once if d is 0.
func (a *Account) scheduleIn(d time.Duration, what happening, do func()) {
	if d <= 0 {
		do()
		return
	}
	a.schedule(a.now.Add(d), what, do)
}

func (a *Account) schedule(t time.Time, what happening, do func()) {
	after := sort.Search(len(a.events), func(i int) bool { return a.events[i].at.After(t) })
	a.events = slices.Insert(a.events, after, event{t, do, what})
}

// lock begins every method that reads or changes the account. First it lets happen what was to
// happen by now, each at its own time, so that history has the right times.
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
