//go:build !race

package explore

// fewFaults is how many faults a run has in CI.
const fewFaults = 2
