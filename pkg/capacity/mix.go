package capacity

import (
	"slices"

	"github.com/enipool/enipool/pkg/eni"
)

// piece is the part of a mixed node that lies in one subnet.
type piece struct {
	Subnet, ENIs, Pods int
}

// mixNodes makes nodes of what whole nodes left in the subnets of one zone, as long as
// it finds one. Each ENI lies in one subnet and costs a primary address there, so a
// node that is spread may need more ENIs than a whole one. What it returns can be
// built. It does not try all ways to deal ENIs out, so another may have a node more;
// Plan.AtMost bounds them all.
func (d density) mixNodes(left []room) [][]piece {
	var nodes [][]piece
	for {
		pieces := d.spreadNode(left)
		if pieces == nil {
			return nodes
		}
		for _, p := range pieces {
			left[p.Subnet] = d.roomWithout(left[p.Subnet], p.ENIs, ceilDiv(p.Pods, d.size))
		}
		nodes = append(nodes, pieces)
	}
}

// none marks a number of ENIs that can't be dealt out.
const none = -1 << 40

// spreadNode finds one node with the fewest ENIs, nil if there is none. most[i][k] is
// how many pods the first i subnets carry with k ENIs.
func (d density) spreadNode(left []room) []piece {
	// A cheap bound first: the table below costs subnets x ENIs x ENIs, for each node again.
	free := 0
	for _, r := range left {
		free += r.addresses
	}
	if free < d.ips {
		return nil
	}
	most := make([][]int, len(left)+1)
	most[0] = slices.Repeat([]int{none}, d.instance.ENIs+1)
	most[0][0] = 0
	for i, free := range left {
		most[i+1] = slices.Repeat([]int{none}, d.instance.ENIs+1)
		for k := range most[i+1] {
			for j := 0; j <= k && j <= free.addresses; j++ {
				most[i+1][k] = max(most[i+1][k], most[i][k-j]+d.podsOn(j, free))
			}
		}
	}
	for k, pods := range most[len(left)] {
		if pods >= d.pods && k >= d.enis { // fewer have no room for the node's places
			return d.piecesOf(left, most, k)
		}
	}
	return nil
}

// podsOn returns how many pods j ENIs carry in a subnet with such room.
func (d density) podsOn(j int, free room) int {
	return min(j*d.instance.PerENI(eni.IPv4), min(free.blocks, (free.addresses-j)/d.size)*d.size)
}

// piecesOf walks the table back from the last subnet and takes no pod more than the
// node has.
func (d density) piecesOf(left []room, most [][]int, k int) []piece {
	var list []piece
	surplus := most[len(left)][k] - d.pods
	for i := len(left) - 1; i >= 0; i-- {
		for j := 0; j <= k && j <= left[i].addresses; j++ {
			pods := d.podsOn(j, left[i])
			if most[i+1][k] != most[i][k-j]+pods {
				continue
			}
			if j > 0 {
				// Without places to keep the surplus is less than any ENI carries: with one ENI less there were too few pods.
				off := min(surplus, pods)
				list = append(list, piece{i, j, pods - off})
				surplus -= off
			}
			k -= j
			break
		}
	}
	return list
}
