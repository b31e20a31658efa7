package operator_test

import "testing"

// sampled returns some in place of all, of cases that are alike, where the race detector watches and time is short: each takes ten times as long with it, and
// where one of them races so does the next. What they test beside that they test without it.
func sampled(all, some int) int {
	if raceDetector && testing.Short() {
		return some
	}
	return all
}
