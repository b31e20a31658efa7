//go:build race

package explore

// fewFaults is how many faults a run has in CI. With the race detector all takes ten times
// as long, and there is one goroutine to look at.
const fewFaults = 1
