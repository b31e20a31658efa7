package operator

import (
	"strings"
	"testing"
	"time"
)

// A node without an object may have no agent at all. That its agent calls the cloud is told only where its object says so.
func TestANodeThatHasAskedForNothingIsNotSaidToCallTheCloud(t *testing.T) {
	for mode, want := range map[string]string{
		"":     "n1: no agent has asked for anything here: the node's agent calls the cloud itself, does not run, or can't write",
		"Self": "n1: its agent calls the cloud itself",
	} {
		if got := (Why{Node: "n1", Mode: mode}).verdict(time.Time{}); !strings.HasPrefix(got, want) {
			t.Errorf("mode %q: %q, want %q", mode, got, want)
		}
	}
}
