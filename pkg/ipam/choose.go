package ipam

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// ENI order is the order in which a node's ENIs were made: the primary ENI first, the latest
// last. A pod gets its addresses from the first ENI in this order that has some free. Four
// things count on it:
//   - pkg/pool releases from the last ENI backwards (shrink.go, inReleaseOrder): with pods spread
//     over all ENIs none would ever be empty, and no ENI could be given up;
//   - pods of the primary ENI need no element in the packet filter's source map
//     (pkg/cni/checksource.go), so they work even while that is being repaired;
//   - State.Addresses, and so the file of the node cache, is grouped by ENI in this order;
//   - the demonstration and the tests with a real containerd look for it (pkg/demo/world.go, test/cri).
//
// What chooses must not count used addresses: see State.

// chooseENI returns the first ENI in ENI order that can serve a pod, and the positions of the
// addresses it would give; nil if there is none. A device limits the choice to the ENI with
// that link. Positions in taken count as used: pending ADDs that came before get them.
func (s *State) chooseENI(device string, taken map[int]bool, now time.Duration) (eni.Interface, []int) {
	for _, nic := range s.ENIs {
		if device != "" && nic.Device != device {
			continue
		}
		if at := s.chooseOnENI(nic.Index, taken, now); at != nil {
			return nic, at
		}
	}
	return eni.Interface{}, nil
}

// chooseENIBehind is chooseENI after the pending ADDs ahead have chosen theirs, each in turn.
func (s *State) chooseENIBehind(ahead []string, device string, now time.Duration) (eni.Interface, []int) {
	var taken map[int]bool // made only where somebody is ahead: most ADDs find nobody
	for _, need := range ahead {
		_, at := s.chooseENI(need, taken, now)
		for _, i := range at {
			if taken == nil {
				taken = map[int]bool{}
			}
			taken[i] = true
		}
	}
	return s.chooseENI(device, taken, now)
}

// chooseOnENI returns the positions of the addresses that the ENI would give a pod, one per
// family, or nil if a family has none. Of its prefixes it takes the fullest one that has an
// address free, so that the others become empty and can be released; of that prefix, or of
// single addresses, the one that is free the longest.
func (s *State) chooseOnENI(index int, taken map[int]bool, now time.Duration) []int {
	var picks [2]eniScan // a node state has two families at most
	families := s.Settings.Families
	for k := range families {
		picks[k].at, picks[k].best.at = none, none
	}
	for i := range s.Addresses {
		a := &s.Addresses[i]
		if a.ENI != index || taken[i] || a.State != eni.Free && a.State != eni.Cooling {
			continue
		}
		for k, f := range families {
			if f == a.Family() {
				since, free := s.FreeSince(a, now)
				picks[k].addAddress(i, s.blockOf(a.Addr), since, free)
			}
		}
	}
	var at []int
	for k := range families {
		picks[k].endBlock()
		if picks[k].best.at == none {
			return nil
		}
		at = append(at, picks[k].best.at)
	}
	return at
}

// blockOf returns the block of an address that comes in one, else the zero Prefix.
func (s *State) blockOf(a netip.Addr) netip.Prefix {
	bits := s.Settings.V6Block
	if a.Is4() {
		bits = s.Settings.V4Block
	}
	p, _ := a.Prefix(bits) // it has that many
	return p
}

// none is the position of no address.
const none = -1

// eniScan goes through the addresses of one ENI and family that nobody has. A block's stand
// beside each other; where they don't, each group counts as a block.
type eniScan struct {
	bestInBlock             // in the block that is gone through
	best        bestInBlock // of those before
	block       netip.Prefix
}

// bestInBlock is the address of a block that is free the longest.
type bestInBlock struct {
	at    int // position, none if all of them cool
	since time.Duration
	idle  int // addresses of the block that nobody has: few where it is full
}

// addAddress notes the address at position i.
func (p *eniScan) addAddress(i int, block netip.Prefix, since time.Duration, free bool) {
	if block != p.block {
		p.endBlock()
		p.block = block
	}
	p.idle++
	if free && (p.at == none || since < p.since) {
		p.at, p.since = i, since
	}
}

// endBlock compares the block with the best before it: with as many addresses idle the
// earlier one stays.
func (p *eniScan) endBlock() {
	if p.at != none && (p.best.at == none || p.idle < p.best.idle) {
		p.best = p.bestInBlock
	}
	p.bestInBlock = bestInBlock{at: none}
}
