package cce

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// The times for which the schema lets an address be kept, and the one that CCE takes by itself.
const (
	leastTTL = 5 * time.Minute
	mostTTL  = 8760 * time.Hour
	usualTTL = 168 * time.Hour
)

// setStrategy says how long addresses are kept. One that gives pods something else than addresses of these subnets can't be carried over.
func (i *imported) setStrategy(s *strategy) error {
	if s == nil {
		s = &strategy{}
	}
	into := &i.topology.Spec.Strategy
	switch kind := s.Type; {
	case kind == "" && s.EnableReuseIPAddress:
		// CCE writes its own strategy over one that has no type.
		i.note("strategy.enableReuseIPAddress does not count without a type: CCE takes Elastic without it")
		into.Type = "Elastic"
	case kind == "Fixed":
		into.Type = "Fixed"
		i.noteFixed(s)
	case kind == "", kind == "Elastic", kind == "Manual", kind == "Custom":
		if kind == "Manual" || kind == "Custom" {
			i.note("strategy.type %s is taken as Elastic, as CCE does", kind)
		}
		if into.Type = "Elastic"; s.EnableReuseIPAddress {
			into.Type = "Sticky"
		}
		if s.ReleaseStrategy == "Never" {
			i.note("strategy.releaseStrategy Never counts for Fixed alone")
		}
	case kind == "PrimaryENI":
		return errors.New("strategy.type PrimaryENI: it gives a pod an ENI of its own, which topologies do not")
	default:
		return fmt.Errorf("strategy.type %s: topologies give pods addresses of subnets, and nothing else", kind)
	}
	i.exclusive = into.Type != "Elastic"
	return i.setTTL(s)
}

func (i *imported) noteFixed(s *strategy) {
	i.note("an address is kept until its StatefulSet is deleted; CCE keeps it until the psts is")
	if s.ReleaseStrategy == "TTL" {
		i.note("strategy.releaseStrategy TTL does not count for Fixed")
	}
}

func (i *imported) setTTL(s *strategy) error {
	into := &i.topology.Spec.Strategy
	ttl := usualTTL
	if s.TTL != "" {
		var err error
		if ttl, err = time.ParseDuration(s.TTL); err != nil {
			return fmt.Errorf("strategy.ttl: %w", err)
		}
	}
	if into.Type != "Sticky" {
		if ttl != usualTTL { // which CCE writes by itself
			i.note("strategy.ttl %s does not count: only an address that is reused has one", s.TTL)
		}
		return nil
	}
	kept := min(max(ttl, leastTTL), mostTTL)
	if kept != ttl {
		i.note("strategy.ttl %s becomes %s: an address is kept for %s to %s", s.TTL, spellTTL(kept), spellTTL(leastTTL), spellTTL(mostTTL))
	}
	into.TTL = spellTTL(kept)
	return nil
}

// spellTTL writes a time as people do: 168h, not 168h0m0s.
func spellTTL(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func (i *imported) setSubnets(subnets map[string][]allocation) error {
	if len(subnets) == 0 {
		return errors.New("it names no subnet")
	}
	// A map has no order, and what is printed must be the same each time.
	for _, id := range slices.Sorted(maps.Keys(subnets)) {
		from := crd.Source{ID: id}
		for _, a := range subnets[id] {
			list, err := i.readRanges(id, a)
			if err != nil {
				return fmt.Errorf("subnet %s: %w", id, err)
			}
			from.Ranges = append(from.Ranges, list...)
		}
		i.topology.Spec.Subnets = append(i.topology.Spec.Subnets, from)
	}
	if len(subnets) > 1 {
		i.note("subnets are tried in this order, and CCE takes them in any: put them in order")
	}
	return nil
}

func (i *imported) readRanges(id string, meant allocation) (list []crd.Range, err error) {
	v6 := meant.family() == "6" && len(meant.Range) == 0
	for _, r := range meant.Range {
		first, err := netip.ParseAddr(r.Start)
		if err != nil {
			return nil, fmt.Errorf("range from %q: %w", r.Start, err)
		}
		last, err := netip.ParseAddr(r.End)
		if err != nil {
			return nil, fmt.Errorf("range to %q: %w", r.End, err)
		}
		if first.BitLen() != last.BitLen() || last.Less(first) {
			return nil, fmt.Errorf("%s to %s is no range", first, last)
		}
		if f := meant.family(); f != "" && (f == "6") != first.Is6() {
			i.note("subnet %s: the range from %s to %s is said to be of family %s; its addresses count", id, first, last, f)
		}
		v6 = v6 || first.Is6()
		list = append(list, crd.Range{From: first.String(), To: last.String()})
	}
	if v6 {
		i.note("subnet %s: IPv6 addresses are given only where families of agent.yaml has ipv6", id)
	}
	// The schema takes no ranges of Elastic: nobody reserves them, and any pod may have one of the addresses.
	if len(list) > 0 && !i.exclusive {
		i.note("subnet %s: its ranges are not carried over, and CCE does not read them: Elastic without enableReuseIPAddress takes the whole subnet", id)
		return nil, nil
	}
	return list, nil
}

// setConstraint writes what CCE would add to pods. Here pods wait for their topology first, and a pod that waits can't be given it any more.
func (i *imported) setConstraint(s spread) {
	skew, when := int32(1), "DoNotSchedule" // what CCE takes where nothing is said
	if s.MaxSkew != nil {
		skew = *s.MaxSkew
	}
	if s.WhenUnsatisfiable != "" {
		when = s.WhenUnsatisfiable
	}
	if skew < 1 { // CCE adds none then
		if s.WhenUnsatisfiable != "" {
			i.note("whenUnsatisfiable %s does not count where maxSkew is %d", s.WhenUnsatisfiable, skew)
		}
		return
	}
	i.constraint = []string{"topologySpreadConstraints:", fmt.Sprintf("- maxSkew: %d", skew), "  topologyKey: topology.kubernetes.io/zone", "  whenUnsatisfiable: " + comment(when)}
	if s.Selector == nil {
		i.note("maxSkew and whenUnsatisfiable: put the labels of your pods into the labelSelector of the constraint below, since there is no selector here")
		i.constraint = append(i.constraint, "  labelSelector: {}")
		return
	}
	text, err := json.Marshal(s.Selector)
	if err != nil {
		text = []byte("{}") // labels are texts, which can be written
	}
	i.constraint = append(i.constraint, "  labelSelector: "+string(text))
}

func readGiven(o object) (g given) {
	_ = json.Unmarshal(o.Status, &g) // it is a help where it can be read
	return g
}
