package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// A node's size if nothing is said of it.
const (
	usualENIs      = 8
	usualIPsPerENI = 30
)

// nodeInstance returns what each node carries.
func (f *playFlags) nodeInstance() (account.Instance, error) {
	if len(f.Types) > 1 {
		return account.Instance{}, fmt.Errorf("--instance-type %s: simulate one at a time", strings.Join(f.Types, ","))
	}
	// A type of the cloud is nearer to what people have than round numbers, but a table of
	// their own need not have it.
	named := len(f.Types) > 0 || f.SizeGiven()
	switch usual := usualType[f.Cloud]; {
	case named || f.MaxENIs > 0 && f.IPsPerENI > 0:
	case usual != "" && f.Limits == "":
		f.Types = []string{usual}
	default:
		f.MaxENIs, f.IPsPerENI = cmp.Or(f.MaxENIs, usualENIs), cmp.Or(f.IPsPerENI, usualIPsPerENI)
	}
	list, err := f.Instances()
	if err != nil {
		return account.Instance{}, err
	}
	m := list[0]
	if m.ENIs > eni.MaxIndex+1 {
		return m, fmt.Errorf("--max-enis %d: an agent knows at most %d", m.ENIs, eni.MaxIndex+1)
	}
	return m, nil
}

// makeWorld returns what the account is like, and how long things take in it.
func (f *playFlags) makeWorld() (w simulate.World, err error) {
	w = simulate.World{MaxENIs: f.quota, Lead: f.lead, Wait: f.wait, Seed: f.seed}
	r, err := f.callRates()
	if err != nil {
		return w, err
	}
	w.Mutating, w.Describing, w.Driver, w.Buckets = r.Mutating, r.Describing, r.Driver, r.Buckets
	w.Latency, err = latencies(f.latency)
	return w, err
}

// parseBucket reads BURST/PER_SECOND, or none.
func parseBucket(text string) (sim.Bucket, error) {
	if text == "none" {
		return sim.Bucket{}, nil
	}
	burst, rate, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(burst)
	perSecond, errRate := strconv.ParseFloat(rate, 64)
	// The comparison is false of what is no number.
	if err != nil || errRate != nil || n < 1 || n > cli.Most || !(perSecond >= 0.001 && perSecond <= 1e6) {
		return sim.Bucket{}, errors.New("must be the calls that pass at once and those a second, like 100/5, or none")
	}
	return sim.Bucket{Burst: n, Every: time.Duration(math.Round(float64(time.Second) / perSecond))}, nil
}

// timedCalls are what --latency calls the methods of a cloud.
var timedCalls = []struct {
	name    string
	methods []string
}{
	{"describe", []string{"Limits", "Interfaces", "Subnets"}},
	{"assign", []string{"AssignAddresses"}},
	{"unassign", []string{"UnassignAddresses"}},
	{"create", []string{"CreateInterface"}},
	{"delete", []string{"DeleteInterface"}},
}

// latencies returns how long each method takes.
func latencies(texts []string) (map[string]sim.Latency, error) {
	typed := map[string]sim.Latency{}
	for _, text := range texts {
		call, took, _ := strings.Cut(text, "=")
		l, err := parseLatency(took)
		switch _, twice := typed[call]; {
		case !slices.Contains(timedNames(), call) || err != nil:
			return nil, fmt.Errorf("--latency %s: must be CALL=BASE or CALL=BASE+JITTER, like assign=600ms+400ms, with one of %s",
				text, strings.Join(timedNames(), ", "))
		case twice:
			return nil, fmt.Errorf("--latency %s: %s is given twice", text, call)
		}
		typed[call] = l
	}
	// Calls that nobody named take as long as they usually do, never no time at all.
	list := simulate.UsualLatency()
	for _, c := range timedCalls {
		if l, found := typed[c.name]; found {
			for _, method := range c.methods {
				list[method] = l
			}
		}
	}
	return list, nil
}

// usualLatencies are the defaults of --latency.
func usualLatencies() []string {
	var texts []string
	usual := simulate.UsualLatency()
	for _, c := range timedCalls {
		l := usual[c.methods[0]]
		texts = append(texts, fmt.Sprintf("%s=%s+%s", c.name, l.Base, l.Jitter))
	}
	return texts
}

func timedNames() []string {
	var names []string
	for _, c := range timedCalls {
		names = append(names, c.name)
	}
	return names
}

// parseLatency reads BASE[+JITTER].
func parseLatency(text string) (l sim.Latency, err error) {
	base, jitter, random := strings.Cut(text, "+")
	l.Base, err = time.ParseDuration(base)
	if random && err == nil {
		l.Jitter, err = time.ParseDuration(jitter)
	}
	if err != nil || l.Base < 0 || l.Jitter < 0 || l.Base > time.Hour || l.Jitter > time.Hour {
		return l, errors.New("must be times from 0s to 1h")
	}
	return l, nil
}

// leastReserved are the addresses of a subnet that no cloud gives out: network,
// gateway and broadcast.
const leastReserved = 3

// placeNodes returns the subnets. Each node has an ENI from the start, in one of them by
// turns.
func (f *playFlags) placeNodes(m account.Instance, nodes int) ([]simulate.Subnet, error) {
	if f.quota > 0 && f.quota < nodes {
		return nil, fmt.Errorf("--eni-quota %d: %d nodes have an ENI each from the start", f.quota, nodes)
	}
	defaults, _ := account.DefaultsOf(f.Cloud)
	f.Reserved = max(defaults.Reserved, leastReserved)
	list, err := f.typedSubnets()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		cidr := roomy(nodes*m.CloudLimits().ENIs*m.V4 + f.Reserved)
		return []simulate.Subnet{{ID: cidr.String(), CIDR: cidr, Reserved: f.Reserved}}, nil
	}
	var places []simulate.Subnet
	for i, s := range list {
		in := (nodes - i + len(list) - 1) / len(list)
		if s.Available < in {
			return nil, fmt.Errorf("--subnet %s: has %d free addresses, and %d nodes that need one each from the start", s.ID, s.Available, in)
		}
		all, err := capacity.Usable(s.CIDR, f.Reserved)
		if err != nil {
			return nil, err
		}
		places = append(places, simulate.Subnet{ID: s.ID, CIDR: s.CIDR, Reserved: f.Reserved, Taken: all - s.Available})
	}
	return places, nil
}

// typedSubnets returns the subnets as they are typed, all of which have a network.
func (f *playFlags) typedSubnets() ([]capacity.Subnet, error) {
	for _, text := range f.Subnets {
		s := account.SpellSubnet(text)
		_, network := account.CIDROf(text)
		_, notAddress := netip.ParseAddr(s.ID)
		switch {
		case s.Zone != "":
			return nil, fmt.Errorf("--subnet %s: zones are not simulated; leave out @%s", text, s.Zone)
		case !network && s.ID != "" && notAddress != nil:
			return nil, fmt.Errorf("--subnet %s: give its network, like %s=10.0.0.0/24", text, s.ID)
		}
	}
	return f.SubnetFlags.Parse()
}

// roomy returns a network with at least that number of addresses, but none larger than a /8.
func roomy(addresses int) netip.Prefix {
	bits := 16
	for bits > 8 && 1<<(32-bits) < addresses {
		bits--
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), bits)
}
