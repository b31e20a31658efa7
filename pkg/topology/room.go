package topology

import (
	"encoding/binary"
	"math"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// Count is how far a topology is used.
type Count struct {
	Pods   int // on nodes, that have not ended
	Claims int
	Room   int // for how many more pods there are addresses
}

// Room returns how many more pods a topology has addresses for, in all zones together: of the family that has fewer where pods have both. A subnet that
// others fill may have less, since only the cloud knows of those; one that can't be served has none. It is math.MaxInt32 at most: a range of IPv6 has more.
func (k *Cluster) Room(of Topology) int {
	if len(k.Families) == 0 || Check(of, k.Topologies, k.Subnets).Reason != "" {
		return 0
	}
	room := math.MaxInt32
	for _, f := range k.Families {
		sum := 0
		for _, from := range of.Sources {
			if in, known := findSubnet(k.Subnets, from.Subnet); known && in.Ready {
				sum += k.roomIn(of, from, in, f)
			}
		}
		room = min(room, sum)
	}
	return room
}

// roomIn counts the addresses of a source that nobody has.
func (k *Cluster) roomIn(of Topology, from Source, in Subnet, f eni.Family) int {
	if in.isFullFor(from) {
		return 0
	}
	left := usableRanges(from, in, f)
	for _, bar := range k.barsOf(of, from, in) {
		left = without(left, bar)
	}
	sum := 0
	for _, r := range left {
		sum = min(math.MaxInt32, sum+r.size())
	}
	return max(0, sum-k.takenIn(left, sum))
}

// takenIn counts the addresses of ranges that somebody has, by going through those of the ranges or through those that somebody has: whichever are fewer.
func (k *Cluster) takenIn(list []Range, size int) (n int) {
	if size <= len(k.Taken)+len(k.On)+len(k.Beside)+len(k.Claims.byAddr) {
		for _, r := range list {
			for at := r.From; at.IsValid() && at.Compare(r.To) <= 0; at = at.Next() {
				if _, claimed := k.Claims.byAddr[at]; claimed || k.isTaken(at) {
					n++
				}
			}
		}
		return n
	}
	for at := range k.Taken {
		n += countIn(list, at)
	}
	for at := range k.On {
		if !k.Taken[at] {
			n += countIn(list, at)
		}
	}
	for at := range k.Beside {
		if !k.Taken[at] && len(k.On[at]) == 0 {
			n += countIn(list, at)
		}
	}
	for at := range k.Claims.byAddr {
		if !k.isTaken(at) {
			n += countIn(list, at)
		}
	}
	return n
}

// countIn returns 1 if one of the ranges has the address, else 0.
func countIn(list []Range, at netip.Addr) int {
	for _, r := range list {
		if r.overlaps(Range{at, at}) {
			return 1
		}
	}
	return 0
}

// without returns what is left of ranges without those of another one.
func without(list []Range, bar Range) (left []Range) {
	for _, r := range list {
		if !r.overlaps(bar) {
			left = append(left, r)
			continue
		}
		if r.From.Less(bar.From) {
			left = append(left, Range{r.From, bar.From.Prev()})
		}
		if bar.To.Less(r.To) {
			left = append(left, Range{bar.To.Next(), r.To})
		}
	}
	return left
}

// size returns how many addresses it has, math.MaxInt32 at most.
func (r Range) size() int {
	a, b := r.From.As16(), r.To.As16()
	if [8]byte(a[:8]) != [8]byte(b[:8]) {
		return math.MaxInt32
	}
	n := binary.BigEndian.Uint64(b[8:]) - binary.BigEndian.Uint64(a[8:])
	if n >= math.MaxInt32 {
		return math.MaxInt32
	}
	return int(n) + 1
}
