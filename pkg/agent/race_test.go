//go:build race

package agent

// fewSteps are the steps of random simulations in CI. With the race detector they take
// eight times as long, and all have the same goroutines: a fifth shows how they meet.
const fewSteps = 20_000
