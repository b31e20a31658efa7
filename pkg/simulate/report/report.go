package report

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/simulate"
)

// Report is what was played and how it went with each setting.
type Report struct {
	Release  string            `json:"enipool"` // that played it
	Load     Load              `json:"load"`
	Instance Instance          `json:"machine"`
	Subnets  []Subnet          `json:"subnets"`
	Cloud    Cloud             `json:"cloud"`
	Lead     simulate.Seconds  `json:"lead"` // how long before a pod's ADD the agent knew of it
	Wait     simulate.Seconds  `json:"wait"` // how long an ADD waited for an address
	Seed     uint64            `json:"seed"`
	Results  []simulate.Result `json:"results"`
	Verdict  *Verdict          `json:"-"`
}

// Verdict is what a search came to. A page begins with it.
type Verdict struct {
	Head    string   // "recommended: batch:B=16,mf=50%"
	Reasons []string // one sentence each
	File    string   // for the agent's file
}

// Load is what came and went.
type Load struct {
	Name     string           `json:"name"`
	Nodes    int              `json:"nodes"`
	Pods     int              `json:"pods"`
	Duration simulate.Seconds `json:"duration"`
}

// Instance is the instance of each node.
type Instance struct {
	Name      string `json:"name,omitempty"` // of its type, if it has one
	ENIs      int    `json:"maxENIs"`
	IPsPerENI int    `json:"ipsPerENI"`        // the primary one among them
	Prefix    int    `json:"prefix,omitempty"` // addresses of one, 0: they come one by one
	MaxPods   int    `json:"maxPods"`
}

// Subnet is where addresses came from.
type Subnet struct {
	ID       string       `json:"id"`
	CIDR     netip.Prefix `json:"cidr"`
	Reserved int          `json:"reserved"` // addresses that the cloud keeps
	Taken    int          `json:"taken"`    // addresses that others had
}

// Cloud is how the account answered.
type Cloud struct {
	MaxENIs    int       `json:"maxENIs"` // 0 is no limit
	Latency    []Latency `json:"latency"`
	Mutating   *Rate     `json:"mutating,omitempty"` // of calls that change something; nil is any
	Describing *Rate     `json:"describing,omitempty"`
	Prices     []Price   `json:"prices,omitempty"` // if there are, the rates are of each kind of request
	Buckets    []Bucket  `json:"buckets,omitempty"`
}

// Price is the requests to the cloud's own API that a call makes.
type Price struct {
	Call     string    `json:"call"`
	Requests []Request `json:"requests"`
}

// Request is a kind of request that a call makes.
type Request struct {
	Name      string `json:"name"`
	Describes bool   `json:"looks"` // it changes nothing
	Count     int    `json:"count"`
	Each      int    `json:"each,omitempty"` // addresses that one is about at most
	Later     bool   `json:"later"`          // when the call is under way
}

// Bucket is the rate of a kind of request that has one of its own.
type Bucket struct {
	Request string `json:"request"`
	Rate
}

// Latency is how long calls of a method took.
type Latency struct {
	Call  string           `json:"call"` // "other" is for methods without an entry
	Least simulate.Seconds `json:"least"`
	Most  simulate.Seconds `json:"most"`
}

// Rate is how many calls passed: some at once, then one each so often.
type Rate struct {
	Burst int              `json:"burst"`
	Every simulate.Seconds `json:"every"`
}

// other is the Call of methods without an entry.
const other = "other"

// New returns the report of a load that was played in a world.
func New(release string, w simulate.World, l simulate.Load, results []simulate.Result) Report {
	// ENIs are those for pods: an index below the first one is the primary ENI, which has none of their addresses.
	r := Report{
		Release:  release,
		Load:     Load{Name: l.Name, Nodes: len(l.Nodes), Duration: simulate.Seconds(l.Duration)},
		Instance: Instance{ENIs: w.Limits.ENIs - w.Limits.FirstIndex(), IPsPerENI: cmp.Or(w.Limits.V4, w.Limits.V6), MaxPods: w.MaxPods, Prefix: w.Limits.V4Block.Size},
		Cloud: Cloud{MaxENIs: w.MaxENIs, Latency: latenciesOf(w.Latency), Mutating: rateOf(w.Mutating), Describing: rateOf(w.Describing),
			Prices: pricesOf(w.Prices()), Buckets: bucketsOf(w.Buckets, w.Prices())},
		Lead:    simulate.Seconds(w.Lead),
		Wait:    simulate.Seconds(w.Wait),
		Seed:    w.Seed,
		Results: results,
	}
	for _, pods := range l.Nodes {
		r.Load.Pods += len(pods)
	}
	for _, s := range w.Subnets {
		r.Subnets = append(r.Subnets, Subnet{ID: s.ID, CIDR: s.CIDR, Reserved: s.Reserved, Taken: s.Taken})
	}
	return r
}

// latenciesOf returns them by name; "other" comes last, as methods begin with capitals.
func latenciesOf(of map[string]sim.Latency) []Latency {
	var list []Latency
	for call, l := range of {
		list = append(list, Latency{cmp.Or(call, other), simulate.Seconds(l.Base), simulate.Seconds(l.Base + l.Jitter)})
	}
	slices.SortFunc(list, func(a, b Latency) int { return strings.Compare(a.Call, b.Call) })
	return list
}

func pricesOf(of map[string][]simulate.Price) []Price {
	var list []Price
	for _, call := range slices.Sorted(maps.Keys(of)) {
		one := Price{Call: call}
		for _, p := range of[call] {
			one.Requests = append(one.Requests, Request{p.Action, p.Describes, max(p.Count, 1), p.Each, p.Later})
		}
		list = append(list, one)
	}
	return list
}

// bucketsOf returns those of the requests that calls are made of: reservations no agent makes.
func bucketsOf(of map[string]sim.Bucket, prices map[string][]simulate.Price) []Bucket {
	made := map[string]bool{}
	for _, price := range prices {
		for _, p := range price {
			made[p.Action] = true
		}
	}
	var list []Bucket
	for _, request := range slices.Sorted(maps.Keys(of)) {
		if r := rateOf(of[request]); r != nil && made[request] {
			list = append(list, Bucket{request, *r})
		}
	}
	return list
}

func rateOf(b sim.Bucket) *Rate {
	if b.Every <= 0 {
		return nil
	}
	return &Rate{max(b.Burst, 1), simulate.Seconds(b.Every)}
}

// JSON writes the report as indented JSON, times in seconds, the same for the same
// report.
func (r Report) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(r.withoutNils())
}

// withoutNils returns the report with empty lists for those that are nil.
func (r Report) withoutNils() Report {
	r.Subnets = append([]Subnet{}, r.Subnets...)
	r.Cloud.Latency = append([]Latency{}, r.Cloud.Latency...)
	r.Results = append([]simulate.Result{}, r.Results...)
	for i, one := range r.Results {
		if one.Series == nil {
			r.Results[i].Series = []simulate.Bin{}
		}
	}
	return r
}
