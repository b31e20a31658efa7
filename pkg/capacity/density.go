package capacity

import "github.com/enipool/enipool/pkg/eni"

// density is how a node of some max-pods takes ENIs and addresses. The last ENI is
// filled only as far as max-pods needs, in whole blocks.
type density struct {
	instance        Instance
	reserved        int // addresses that the cloud keeps of a subnet
	pods, enis, ips int
	size, blocks    int // addresses of a block, blocks of a node
}

// densityOf returns how a node takes them that keeps places for addresses of other subnets: its ENIs have room for them, too,
// and each takes the place of a block.
func densityOf(m Instance, pods, places int) density {
	per, size := m.PerENI(eni.IPv4), max(m.Block(eni.IPv4).Size, 1)
	d := density{instance: m, pods: pods, enis: ceilDiv(ceilDiv(pods, size)+places, per/size), size: size, blocks: ceilDiv(pods, size)}
	d.ips = d.enis + d.blocks*size
	return d
}

// ceilDiv divides and rounds up.
func ceilDiv(n, by int) int { return (n + by - 1) / by }

// room is what is free in a subnet. Blocks are runs of addresses that nothing is taken
// from; single addresses, the primary ones of ENIs, are taken from the rest first.
type room struct{ addresses, blocks int }

// roomOf returns what the free addresses of a subnet are at best. Those that the cloud keeps are the
// first and the last of a subnet, and no block has them.
func (d density) roomOf(available int) room {
	if d.size == 1 {
		return room{available, available}
	}
	return room{available, max(available+min(d.reserved, 2*d.size)-2*d.size, 0) / d.size}
}

// wholeNodes returns how many whole nodes there is room for.
func (d density) wholeNodes(r room) int { return min(r.addresses/d.ips, r.blocks/d.blocks) }

// roomWithout returns what is left when ENIs and pods have theirs.
func (d density) roomWithout(r room, enis, blocks int) room {
	return room{r.addresses - enis - blocks*d.size, r.blocks - blocks}
}
