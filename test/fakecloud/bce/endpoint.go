package bce

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud"
)

// Options are what an endpoint is like. The zero Options are one that lets
// everybody do everything.
type Options struct {
	Keys    map[string]string // secret access keys by access key id; none, and no Role: signatures are not looked at
	Denied  []string          // actions that nobody may call, such as "GetEniQuota"
	Role    bool              // instances have a role: metadata has credentials that this endpoint accepts
	RoleTTL time.Duration     // of those credentials, 0 is an hour

	MaxPage  int  // how many ENIs or subnets a page has at most, 0 is 1000
	NoQuota  bool // the quotas are all 0, as for kinds of instances that have none
	NoTokens bool // client tokens are not looked at

	CrossSubnet bool // the account is on the white list for addresses of other subnets
}

// Endpoint serves an account. Its methods may be called from several goroutines.
type Endpoint struct {
	a *sim.Account
	o Options

	mu       sync.Mutex
	keys     map[string]key
	denied   map[string]bool
	issued   key
	requests int
	roles    int
}

// New makes an endpoint of the account.
func New(account *sim.Account, o Options) *Endpoint {
	o.RoleTTL = cmp.Or(o.RoleTTL, time.Hour)
	o.MaxPage = cmp.Or(o.MaxPage, 1000)
	e := &Endpoint{a: account, o: o, keys: map[string]key{}, denied: map[string]bool{}}
	for id, secret := range o.Keys {
		e.keys[id] = key{id: id, secret: secret}
	}
	for _, action := range o.Denied {
		e.denied[action] = true
	}
	return e
}

// FailNext makes the next calls of an action fail; "" is any action, "Metadata" one
// of the metadata service. More of them queue up.
func (e *Endpoint) FailNext(action string, faults ...sim.Fault) { e.a.FailNext(action, faults...) }

// SetKeys replaces the keys that are accepted, those of the role excepted.
func (e *Endpoint) SetKeys(keys map[string]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.keys, func(_ string, k key) bool { return k.token == "" })
	for id, secret := range keys {
		e.keys[id] = key{id: id, secret: secret}
	}
}

// NewID makes ids as this cloud does, the same ones in each run, for sim.Options.
func NewID(kind string, n int) string {
	const letters = "0123456789abcdefghijkmnpqrstuvwxyz"
	prefix := map[string]string{"vpc": "vpc", "eni": "eni"}[kind]
	text := make([]byte, 12)
	for i, b := range sha256.Sum256(fmt.Append(nil, kind, n)) {
		if i < len(text) {
			text[i] = letters[int(b)%len(letters)]
		}
	}
	return cmp.Or(prefix, kind) + "-" + string(text)
}

// Reserve is the network, the router and the broadcast address: .0, .1 and the
// last.
var Reserve = sim.Reserve{First: 2, Last: 1}

// Types are some types of instances, of each kind one at least: a type's name
// begins with its kind. Each has its own ENI besides as many as it has processors,
// at most 8, and the addresses an ENI that its memory allows.
func Types() []sim.Type {
	return []sim.Type{
		{Name: "bcc.g5.c1m1", ENIs: 2, V4: 2, V6: 2, CPUs: 1, Memory: 1 << 10},
		{Name: "bcc.g5.c2m8", ENIs: 3, V4: 8, V6: 8, CPUs: 2, Memory: 8 << 10},
		{Name: "bcc.g5.c4m8", ENIs: 5, V4: 8, V6: 8, CPUs: 4, Memory: 8 << 10},
		{Name: "bcc.g5.c4m16", ENIs: 5, V4: 16, V6: 16, CPUs: 4, Memory: 16 << 10},
		{Name: "bcc.g5.c16m64", ENIs: 9, V4: 30, V6: 30, CPUs: 16, Memory: 64 << 10},
		{Name: "bcc.g5.c32m128", ENIs: 9, V4: 40, V6: 40, CPUs: 32, Memory: 128 << 10},
		{Name: "bbc.s3", ENIs: 1, V4: 40, V6: 40, CPUs: 64, Memory: 256 << 10},
		{Name: "ebc.l5", ENIs: 9, V4: 40, V6: 40, CPUs: 128, Memory: 512 << 10},
		{Name: "ebc.l5.own", ENIs: 1, V4: 40, V6: 40, CPUs: 128, Memory: 512 << 10},
	}
}

// Limited returns the options with the rates that Baidu's own driver keeps to.
func Limited(o sim.Options) sim.Options {
	rate := func(perSecond int) sim.Bucket {
		return sim.Bucket{Burst: 2 * perSecond, Every: time.Second / time.Duration(perSecond)}
	}
	o.Mutating, o.Describing = rate(10), rate(20)
	o.Buckets = map[string]sim.Bucket{
		"CreateEni": rate(5), "AttachEniInstance": rate(5), "BatchAddPrivateIp": rate(5), "BatchAddPrivateIpCrossSubnet": rate(5),
		"DeleteEni": rate(1), "ListEni": rate(1),
	}
	return o
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
	w.Header().Set("Server", "BWS")
	w.Header().Set("Date", e.a.Clock().Now().UTC().Format(http.TimeFormat))
}
