package ec2

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud"
)

// Options are what an endpoint is like. The zero Options are one that lets
// everybody do everything.
type Options struct {
	Keys    map[string]string // secret access keys by access key id; none, and no Role: signatures are not looked at
	Allowed []string          // actions that may be called, such as "ec2:Describe*"; nil is all
	Role    string            // of the instances: metadata has credentials of it that this endpoint accepts
	RoleTTL time.Duration     // of those credentials, 0 is 6 hours

	MetadataLag time.Duration // metadata shows what was so long ago
	MaxUnpaged  int           // more ENIs than that must be asked for in pages, 0 is no limit
	Quirks      Quirks
}

// Quirks are deviations from EC2 that emulators of it are known for.
type Quirks struct {
	AssignListsAll      bool // answers to an assignment list all addresses of the ENI, the primary first
	NoTokens            bool // client tokens are not looked at
	NoPaging            bool // MaxResults is not looked at
	NoLimits            bool // instances and ENIs carry any number
	NoPrefixes          bool // prefixes are accepted and never there
	NoDeleteOnTerminate bool // changing DeleteOnTermination is accepted and does nothing
	NoSecondaryFilter   bool // addresses.private-ip-address finds primary addresses alone
	FiltersFail         bool // a filter that is not known is an internal error
}

// AllQuirks are those of an emulator that has every one.
func AllQuirks() Quirks {
	return Quirks{AssignListsAll: true, NoTokens: true, NoPaging: true, NoLimits: true, NoPrefixes: true,
		NoDeleteOnTerminate: true, NoSecondaryFilter: true, FiltersFail: true}
}

// Endpoint serves an account. Its methods may be called from several goroutines.
type Endpoint struct {
	a *sim.Account
	o Options

	mu       sync.Mutex
	keys     map[string]key
	allowed  []string // nil is all
	pages    map[string]any
	order    []string // the tokens of pages, the oldest first
	sessions map[string]time.Time
	issued   credentials
	requests int
	ids      int
}

// New makes an endpoint of the account.
func New(account *sim.Account, o Options) *Endpoint {
	o.RoleTTL = cmp.Or(o.RoleTTL, 6*time.Hour)
	e := &Endpoint{a: account, o: o, keys: map[string]key{}, allowed: slices.Clone(o.Allowed), pages: map[string]any{},
		sessions: map[string]time.Time{}}
	for id, secret := range o.Keys {
		e.keys[id] = key{secret: secret}
	}
	account.Remember(o.MetadataLag)
	if o.Quirks.NoLimits {
		account.LiftLimits()
	}
	return e
}

// FailNext makes the next call of an action fail; "" is any action, "Metadata" one
// of the metadata service. More of them queue up.
func (e *Endpoint) FailNext(action string, f sim.Fault) { e.a.FailNext(action, f) }

// Allow replaces the actions that may be called, in the form of Options.Allowed;
// nil is all of them.
func (e *Endpoint) Allow(actions []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.allowed = slices.Clone(actions)
}

// SetKeys replaces the keys that are accepted, those of the role excepted.
func (e *Endpoint) SetKeys(keys map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.keys, func(_ string, k key) bool { return k.token == "" })
	for id, secret := range keys {
		e.keys[id] = key{secret: secret}
	}
}

// Limited returns the options with the request rates of a region as EC2 documents them.
func Limited(o sim.Options) sim.Options {
	rate := func(burst, perSecond int) sim.Bucket {
		return sim.Bucket{Burst: burst, Every: time.Second / time.Duration(perSecond)}
	}
	o.Describing, o.Mutating = rate(100, 20), rate(50, 5)
	o.Buckets = map[string]sim.Bucket{
		unfiltered:   rate(50, 10),
		"CreateTags": rate(100, 10),
		"DeleteTags": rate(100, 10),
	}
	for _, action := range []string{"AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "AssignIpv6Addresses",
		"UnassignIpv6Addresses", "CreateNetworkInterface", "DeleteNetworkInterface", "ModifyNetworkInterfaceAttribute"} {
		o.Buckets[action] = rate(100, 5)
	}
	return o
}

// unfiltered is the bucket of describes that ask for all there is, in one answer.
const unfiltered = "unfiltered"

// Types are some of EC2's instance types, for sim.Account.AddType.
func Types() []sim.Type {
	return []sim.Type{
		{Name: "t3.small", ENIs: 3, V4: 4, V6: 4, CPUs: 2, Memory: 2 << 10},
		{Name: "t3.medium", ENIs: 3, V4: 6, V6: 6, CPUs: 2, Memory: 4 << 10},
		{Name: "m4.large", ENIs: 2, V4: 10, V6: 10, CPUs: 2, Memory: 8 << 10, NoPrefix: true},
		{Name: "m5.large", ENIs: 3, V4: 10, V6: 10, CPUs: 2, Memory: 8 << 10},
		{Name: "m5.xlarge", ENIs: 4, V4: 15, V6: 15, CPUs: 4, Memory: 16 << 10},
		{Name: "m5.4xlarge", ENIs: 8, V4: 30, V6: 30, CPUs: 16, Memory: 64 << 10},
		{Name: "c6i.8xlarge", ENIs: 8, V4: 30, V6: 30, CPUs: 32, Memory: 64 << 10},
		{Name: "m5.24xlarge", ENIs: 15, V4: 50, V6: 50, CPUs: 96, Memory: 384 << 10},
		{Name: "p4d.24xlarge", ENIs: 60, V4: 50, V6: 50, Cards: []int{15, 15, 15, 15}, CPUs: 96, Memory: 1152 << 10},
	}
}

// requestID makes the id of an answer.
func (e *Endpoint) requestID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	return fakecloud.RequestID(e.requests)
}

// stamp sets the headers that every answer has.
func (e *Endpoint) stamp(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Date", e.a.Clock().Now().UTC().Format(http.TimeFormat))
}
