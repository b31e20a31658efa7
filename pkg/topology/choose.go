package topology

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/placement"
)

// Cluster is what is known of all topologies, and of the addresses there are.
type Cluster struct {
	Topologies []Topology
	Subnets    []Subnet
	Families   []eni.Family // that pods have addresses of

	Claims Claims
	Taken  map[netip.Addr]bool      // on ENIs, whoever's, and those of which the cloud said so
	Blocks []netip.Prefix           // delegated prefixes
	On     map[netip.Addr][]string  // those on ENIs may be here too, by address with the nodes,
	Beside map[netip.Addr]int       // and others with how often they are taken: a large cluster keeps both from one question to the next
	Freed  map[netip.Addr]time.Time // when pods had ended that had the address, as far as anybody remembers
}

// Node is where a pod is to run, and which addresses it can have there.
type Node struct {
	Name, Zone string
	Anywhere   bool     // of each subnet of the zone: the cloud carries them across subnets, or there is room for one more ENI
	Subnets    []string // else of those: an ENI lies there and can carry one more
	Only       string   // of this one alone, where the pod's address of another family is; "" for any
}

func (n Node) takes(subnet string) bool { return n.Anywhere || slices.Contains(n.Subnets, subnet) }

// Choose returns the address of a family for a pod on a node, as the claim to be made or taken up; one of an Elastic topology is no
// object. A claim that exists is taken up wherever the topology's ranges are now. Else the first subnet that has one left gives the
// lowest address that no pod had before, or the one that has been free for the longest time: peers may still know the others.
func Choose(of Topology, pod Pod, node Node, family eni.Family, cluster *Cluster) (Claim, Wait) {
	if of.Strategy == Fixed && pod.StatefulSet.Name == "" {
		return Claim{}, Wait{Cause: NoStatefulSet, Message: fmt.Sprintf("topology %s gives Fixed addresses, and no StatefulSet of apps/v1 controls the pod: make it by one, or have it selected by a Sticky topology", of.Name)}
	}
	if of.keeps() {
		if c, has := cluster.Claims.Of(of.Name, pod, family); has {
			return c, cluster.whyNotThere(c, node)
		}
	}
	if why := Check(of, cluster.Topologies, cluster.Subnets); why.Reason != "" {
		return Claim{}, Wait{Cause: TopologyNotReady, Message: fmt.Sprintf("topology %s: %s", of.Name, why.Message)}
	}
	sources := slices.DeleteFunc(cluster.sourcesIn(of, node.Zone, family), func(from Source) bool { return node.Only != "" && from.Subnet != node.Only })
	if len(sources) == 0 {
		return Claim{}, Wait{Cause: NoSubnet, Message: fmt.Sprintf("no subnet of topology %s with %s is ready in zone %s", of.Name, family, node.Zone)}
	}
	// Of a subnet that the node can't have now nothing is taken, though it is preferred: the pod would wait for an ENI beside free addresses.
	var elsewhere []Source
	for _, from := range sources {
		at, found := cluster.pickAddr(of, from, family)
		switch {
		case found && !node.takes(from.Subnet):
			elsewhere = append(elsewhere, from)
		case found:
			c := Claim{Addr: at, Topology: of.Name, Subnet: from.Subnet, Namespace: pod.Namespace, Pod: pod.Name, Keep: of.Strategy}
			switch of.Strategy {
			case Sticky:
				c.TTL = of.TTL
			case Fixed:
				c.StatefulSet = pod.StatefulSet
			}
			return c, Wait{}
		}
	}
	if len(elsewhere) > 0 { // those of the node's ENIs are used up, or it has none: one more ENI serves the pod
		return Claim{}, noSlot(node, elsewhere)
	}
	return Claim{}, cluster.noRoom(of, []string{node.Zone}, sources, []eni.Family{family})
}

// whyNotThere says what keeps a claim's address from the node.
func (k *Cluster) whyNotThere(c Claim, n Node) Wait {
	in, known := findSubnet(k.Subnets, c.Subnet)
	switch {
	case !known:
		return Wait{Cause: NoSubnet, Message: fmt.Sprintf("the pod's address %s is of subnet %s, which the cloud does not show", c.Addr, c.Subnet)}
	case in.Zone != n.Zone:
		return Wait{Cause: OtherZone, Message: fmt.Sprintf("the pod's address %s lies in zone %s, and %s in zone %s: delete the pod, or the claim", c.Addr, in.Zone, n.Name, n.Zone)}
	case c.Node != n.Name && !n.takes(c.Subnet):
		return noSlot(n, []Source{{Subnet: c.Subnet}})
	}
	return Wait{}
}

func noSlot(n Node, sources []Source) Wait {
	var ids []string
	for _, from := range sources {
		ids = append(ids, from.Subnet)
	}
	return Wait{Cause: NoSlot, Message: fmt.Sprintf("no ENI of %s can carry one more address of %s", n.Name, strings.Join(ids, ", "))}
}

// sourcesIn returns the sources of ready subnets of a zone that have addresses of the family, and of all others that pods need, in order of preference.
func (k *Cluster) sourcesIn(t Topology, zone string, f eni.Family) (list []Source) {
	for _, from := range t.Sources {
		if in, known := findSubnet(k.Subnets, from.Subnet); known && in.Ready && in.Zone == zone && len(usableRanges(from, in, f)) > 0 && k.hasAll(from, in) {
			list = append(list, from)
		}
	}
	return list
}

// hasAll tells whether a source has addresses of each family: a pod gets all on one ENI.
func (k *Cluster) hasAll(from Source, in Subnet) bool {
	return !slices.ContainsFunc(k.Families, func(f eni.Family) bool { return len(usableRanges(from, in, f)) == 0 })
}

// pickAddr returns the next address of a source that nobody has.
func (k *Cluster) pickAddr(t Topology, from Source, f eni.Family) (best netip.Addr, found bool) {
	in, _ := findSubnet(k.Subnets, from.Subnet)
	if in.isFullFor(from) {
		return best, false
	}
	bars := k.barsOf(t, from, in)
	var bestFreed time.Time
	for _, r := range usableRanges(from, in, f) {
		for at := r.From; at.IsValid() && at.Compare(r.To) <= 0; at = at.Next() {
			// What is barred is stepped over in one go: a range of IPv6 has more addresses than anybody can count.
			if i := slices.IndexFunc(bars, Range{at, at}.overlaps); i >= 0 {
				at = bars[i].To
				continue
			}
			if _, claimed := k.Claims.byAddr[at]; claimed || k.isTaken(at) {
				continue
			}
			freed, used := k.Freed[at]
			if !used {
				return at, true
			}
			if !found || freed.Before(bestFreed) {
				best, bestFreed, found = at, freed, true
			}
		}
	}
	return best, found
}

// isTaken tells whether somebody has an address, with a claim or without.
func (k *Cluster) isTaken(at netip.Addr) bool {
	return k.Taken[at] || len(k.On[at]) > 0 || k.Beside[at] > 0
}

// barsOf returns what no address is taken of: delegated prefixes, and for a source without ranges those that other topologies name. It
// has what is left of the subnet.
func (k *Cluster) barsOf(t Topology, from Source, in Subnet) (list []Range) {
	for _, p := range k.Blocks {
		list = append(list, Range{p.Masked().Addr(), placement.LastOf(p)})
	}
	for _, other := range k.Topologies {
		if other.Name != t.Name && len(from.Ranges) == 0 {
			list = append(list, rangesOf(other, in)...)
		}
	}
	return list
}

// noRoom says that all is taken, in which subnets, and which claim ends first.
func (k *Cluster) noRoom(t Topology, zones []string, sources []Source, families []eni.Family) Wait {
	var first Claim
	var until time.Time
	for _, c := range k.Claims.byAddr {
		end, ends := c.EndsAt()
		if !ends {
			continue // nearly all
		}
		mine := slices.ContainsFunc(sources, func(from Source) bool { return k.isOf(from, c.Addr) })
		if mine && (until.IsZero() || end.Before(until) || end.Equal(until) && c.Addr.Less(first.Addr)) {
			first, until = c, end
		}
	}
	w := Wait{Cause: NoRoom, Until: until,
		Message: fmt.Sprintf("no address of topology %s is left in zone %s (%s)", t.Name, strings.Join(zones, ", "), k.fullText(t, sources, families))}
	switch {
	case until.IsZero() && t.keeps():
		w.Message += fmt.Sprintf(": add a subnet or a range, or delete claims that nobody needs (`enipoolctl cluster claims --topology %s`)", t.Name)
		return w
	case until.IsZero():
		w.Message += ": add a subnet, or wait for other pods of it to end"
		return w
	}
	w.Message += fmt.Sprintf(": the next is %s, when the claim of %s/%s ends at %s", first.Addr, first.Namespace, first.Pod, until.UTC().Format(time.RFC3339))
	return w
}

// fullText says of each source that has none left how many addresses it had.
func (k *Cluster) fullText(t Topology, sources []Source, families []eni.Family) string {
	var words []string
	for _, from := range sources {
		in, _ := findSubnet(k.Subnets, from.Subnet)
		if in.isFullFor(from) {
			words = append(words, from.Subnet+": the cloud has none left")
			continue
		}
		for _, f := range families {
			if _, found := k.pickAddr(t, from, f); found {
				continue
			}
			size, of := 0, ""
			for _, r := range usableRanges(from, in, f) {
				size = min(math.MaxInt32, size+r.size())
			}
			if len(k.Families) > 1 {
				of = " " + f.String()
			}
			if len(from.Ranges) > 0 {
				of += " in its ranges"
			}
			words = append(words, fmt.Sprintf("%s: none of %d%s", from.Subnet, size, of))
		}
	}
	return strings.Join(words, ", ")
}

// isFullFor tells whether the cloud has no address left for a source. Those that are free by what is known here others have.
func (s Subnet) isFullFor(from Source) bool {
	return s.Full && (len(from.Ranges) == 0 || len(s.Reserved) == 0)
}

// isOf tells whether a source has the address.
func (k *Cluster) isOf(from Source, at netip.Addr) bool {
	in, known := findSubnet(k.Subnets, from.Subnet)
	return known && slices.ContainsFunc(usableRanges(from, in, eni.FamilyOf(at)), Range{at, at}.overlaps)
}
