package pool

// Watermarks are the settings of a best-effort pool, in slots.
type Watermarks struct {
	Pre   int // free ones to keep
	Min   int // ones that there are at least
	Above int // free ones beyond Pre before any goes back
	Most  int // that there may be, 0 for no limit
}

// Needed returns how many slots a best-effort pool lacks that has that many and of
// which pods use that many.
func Needed(have, used int, w Watermarks) int {
	n := w.Pre - (have - used)
	if w.Min > 0 {
		n = max(n, w.Min-have)
	}
	if w.Most > 0 {
		n = min(n, w.Most-have)
	}
	return max(n, 0)
}

// Excess returns how many slots a best-effort pool has too many as cce-network-v2
// counts it: up to Min+Above none, beyond that all but Pre+Above free ones.
//
// A plan does not go by it. It is not continuous: with Pre 0, Min 16 and Above 0 a
// pool of 16 has none too many and one of 17 has 9, which leaves 8, and Needed asks
// for 8 again at once. A plan gives back what is above target+Above, and the target
// is never below Min, so that it gives back 1 and rests.
func Excess(have, used int, w Watermarks) int {
	if have <= w.Min+w.Above {
		return 0
	}
	return max(0, have-used-w.Pre-w.Above)
}
