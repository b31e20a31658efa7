//go:build !race

package agent

// fewSteps are the steps of random simulations in CI.
const fewSteps = 100_000
