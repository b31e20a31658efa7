//go:build race

package e2e

// raceEnabled tells whether the tests run with the race detector.
const raceEnabled = true
