//go:build race

package e2e

import "testing"

// raceEnabled tells whether the tests run with the race detector.
const raceEnabled = true

// nothingRaces skips a test that runs programs of make build alone, which have no race detector,
// and calls our packages from one goroutine: make test runs it. Agents are built with the detector.
func nothingRaces(t testing.TB) {
	t.Helper()
	t.Skip("no program of this test has the race detector: make test runs it")
}
