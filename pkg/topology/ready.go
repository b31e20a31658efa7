package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Unready is why a topology can't be served as it is: the reason of its condition Ready, and words for people. The zero Unready is none.
type Unready struct{ Reason, Message string }

// The reasons.
const (
	UnreadyNoSubnet     = "NoSubnet"
	UnreadyOutside      = "RangeOutsideSubnet"
	UnreadyOverlap      = "RangeOverlap"
	UnreadyNotExclusive = "SubnetNotExclusive"
)

// Check says whether a topology can be served, beside the others of the cluster.
func Check(t Topology, others []Topology, subnets []Subnet) Unready {
	ready := 0
	for _, from := range t.Sources {
		in, known := findSubnet(subnets, from.Subnet)
		if !known || !in.Ready {
			continue // one that the cloud does not show now takes nothing from the others
		}
		ready++
		if why := checkSource(t, from, in); why.Reason != "" {
			return why
		}
		if r, rival, overlap := findOverlap(t, from, in, others); overlap {
			return Unready{UnreadyOverlap, fmt.Sprintf("%s of subnet %s overlaps with a range of topology %s: remove one of them", r, in.ID, rival)}
		}
	}
	if ready == 0 {
		return Unready{UnreadyNoSubnet, "none of its subnets is ready: " + Lacking(t, subnets)}
	}
	return Unready{}
}

// Lacking says which subnets of a topology give it no addresses, though it may be served without them, and what to do. "" is none.
func Lacking(t Topology, subnets []Subnet) string {
	var unknown, unready, words []string
	for _, from := range t.Sources {
		switch in, known := findSubnet(subnets, from.Subnet); {
		case !known:
			unknown = append(unknown, from.Subnet)
		case !in.Ready:
			unready = append(unready, from.Subnet)
		}
	}
	if len(unknown) > 0 {
		words = append(words, fmt.Sprintf("the operator does not know %s (correct that, or name it in cloud.subnets or cloud.subnetTags of operator.yaml)", strings.Join(unknown, ", ")))
	}
	if len(unready) > 0 {
		words = append(words, fmt.Sprintf("not ready: %s (`enipoolctl cluster subnets` says why)", strings.Join(unready, ", ")))
	}
	return strings.Join(words, "; ")
}

func findSubnet(subnets []Subnet, id string) (Subnet, bool) {
	if at := slices.IndexFunc(subnets, func(s Subnet) bool { return s.ID == id }); at >= 0 {
		return subnets[at], true
	}
	return Subnet{}, false
}

// checkSource looks at one source by itself. An address that outlives its pod needs one that nobody else is given: of a subnet that is
// the topologies' alone, or of ranges that the cloud gives by name alone.
func checkSource(t Topology, from Source, in Subnet) Unready {
	prefixes, err := Cover(from, in)
	if err != nil {
		return Unready{UnreadyOutside, err.Error()}
	}
	if !t.keeps() || in.Exclusive {
		return Unready{}
	}
	for _, p := range prefixes {
		if !slices.ContainsFunc(in.Reserved, func(is netip.Prefix) bool { return is.Contains(p.Addr()) && is.Bits() <= p.Bits() }) {
			return Unready{UnreadyNotExclusive, fmt.Sprintf("subnet %s is not Exclusive, and %s is not reserved in the cloud yet; if that lasts, the condition Reserved of the Subnet says why", in.ID, p)}
		}
	}
	if len(prefixes) == 0 {
		return Unready{UnreadyNotExclusive, fmt.Sprintf("subnet %s is not Exclusive, and no ranges of it are named that could be reserved in the cloud: name some, or set use: Exclusive on the Subnet", in.ID)}
	}
	return Unready{}
}

// findOverlap returns a range of the source that overlaps with another one of it, or with one of an older topology. The older one stays
// ready: whoever makes a new one must not be able to stop it.
func findOverlap(t Topology, from Source, in Subnet, others []Topology) (r Range, rival string, overlap bool) {
	for i, r := range from.Ranges {
		if slices.ContainsFunc(from.Ranges[:i], r.overlaps) {
			return r, t.Name, true
		}
		for _, other := range others {
			if other.Name != t.Name && cmp.Or(other.Created.Compare(t.Created), cmp.Compare(other.Name, t.Name)) < 0 && slices.ContainsFunc(rangesOf(other, in), r.overlaps) {
				return r, other.Name, true
			}
		}
	}
	return Range{}, "", false
}

// rangesOf returns which ranges of a subnet a topology names. A wrong one keeps nothing from others.
func rangesOf(t Topology, in Subnet) (list []Range) {
	for _, from := range t.Sources {
		if from.Subnet == in.ID {
			list = append(list, from.Ranges...)
		}
	}
	return slices.DeleteFunc(list, func(r Range) bool { return in.checkRange(r) != nil })
}
