package placement

import "slices"

// Share divides what there is among those who wait, the oldest first: nobody gets more than it
// wants, and nobody could get more without one who has less getting less (max-min). What can't
// be divided goes to the oldest.
func Share(supply int, wants []int) []int {
	got := make([]int, len(wants))
	for supply > 0 {
		var open []int
		for i, want := range wants {
			if got[i] < want {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return got
		}
		// As much as all can take: the least that one of them still wants ends a round.
		each := supply / len(open)
		for _, i := range open {
			each = min(each, wants[i]-got[i])
		}
		if each == 0 {
			for _, i := range open[:min(supply, len(open))] {
				got[i]++
			}
			return got
		}
		for _, i := range open {
			got[i] += each
		}
		supply -= each * len(open)
	}
	return got
}

// Reclaim returns how many idle slots each node is to release so that need come free: from
// those with most idle ones, until they have no more than the others, each keeping spare. What
// can't be divided comes from the first.
func Reclaim(need int, idle []int, spare int) []int {
	take := make([]int, len(idle))
	left := slices.Clone(idle)
	for need > 0 {
		top, next := spare, spare
		for _, n := range left {
			top = max(top, n)
		}
		for _, n := range left {
			if n < top {
				next = max(next, n)
			}
		}
		if top <= spare {
			return take
		}
		var highest []int
		for i, n := range left {
			if n == top {
				highest = append(highest, i)
			}
		}
		each := min(top-next, need/len(highest))
		if each == 0 {
			for _, i := range highest[:min(need, len(highest))] {
				take[i]++
			}
			return take
		}
		for _, i := range highest {
			take[i] += each
			left[i] -= each
		}
		need -= each * len(highest)
	}
	return take
}
