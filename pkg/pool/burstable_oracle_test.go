package pool

// enisFor returns how many ENIs of per slots a burstable node has when pods use that
// many of them: enough for the pods, and multiple ENIs more, as long as the node
// may hold more than it does. It is the closed form of the rule "make one more ENI
// while fewer than multiple*per slots are free".
func enisFor(most, per, multiple, used int) int {
	if per <= 0 {
		return 0
	}
	return min(ceilDiv(most, per), multiple+ceilDiv(used, per))
}

// fillOf returns how many slots the k-th ENI of a burstable node gets, counted from
// 1: all that it carries, but for the last one, which gets what is left of most.
//
// sources/cce-planned-cluster-mode.md, 3.2.2.3, has the last one as "max-allocate %
// maxIPsPerENI". That divides by the addresses of an ENI with its primary, which no
// pod can use: with 30 an ENI and 128 at most it is 8, and 4*29+8 is 124, not 128.
// Right is the remainder by 29, which is 12; and a remainder of 0 is a full ENI.
func fillOf(most, per, k int) int {
	return max(0, min(per, most-(k-1)*per))
}

// footprintOf returns how many addresses of a family a burstable node takes from its
// subnets at most: its slots, and one primary an ENI. It is what the planner
// counts with (ip_max_per_node of sources/cce-planned-cluster-mode.md).
func footprintOf(most, per int) int {
	if per <= 0 {
		return 0
	}
	return most + ceilDiv(most, per)
}
