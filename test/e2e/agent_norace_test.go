//go:build !race

package e2e

import "testing"

// raceEnabled tells whether the tests run with the race detector.
const raceEnabled = false

// nothingRaces skips a test of which nothing could race, where that is what is looked for.
func nothingRaces(testing.TB) {}
