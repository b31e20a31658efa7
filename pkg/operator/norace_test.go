//go:build !race

package operator_test

// raceDetector tells whether it watches.
const raceDetector = false
