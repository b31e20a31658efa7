package pool

// watermarks are the settings of a best-effort pool, in slots.
type watermarks struct {
	Pre   int // free ones to keep
	Min   int // ones that there are at least
	Above int // free ones beyond Pre before any goes back
	Most  int // that there may be, 0 for no limit
}

// neededBy returns how many slots a best-effort pool lacks that has that many and of
// which pods use that many.
func neededBy(have, used int, w watermarks) int {
	n := w.Pre - (have - used)
	if w.Min > 0 {
		n = max(n, w.Min-have)
	}
	if w.Most > 0 {
		n = min(n, w.Most-have)
	}
	return max(n, 0)
}

// excessBy returns how many slots a best-effort pool has too many as cce-network-v2
// counts it: up to Min+Above none, beyond that all but Pre+Above free ones.
//
// A plan does not go by it. It is not continuous: with Pre 0, Min 16 and Above 0 a
// pool of 16 has none too many and one of 17 has 9, which leaves 8, and neededBy asks
// for 8 again at once. A plan gives back what is above target+Above, and the target
// is never below Min, so that it gives back 1 and rests.
func excessBy(have, used int, w watermarks) int {
	if have <= w.Min+w.Above {
		return 0
	}
	return max(0, have-used-w.Pre-w.Above)
}
