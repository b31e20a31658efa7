package simulate

import (
	"testing"
	"time"
)

// When a play ends, calls are under way that go on after their wait has failed: the engine
// cleans up, and the till waits for the second half of the call's time.
func TestACallThatIsBrokenOffMayWaitAgain(t *testing.T) {
	c := &clock{}
	var waits []error
	c.beginCall(time.Hour, func() {
		for range 3 {
			waits = append(waits, c.Wait(t.Context(), time.Minute))
		}
	}, func() {})
	c.runNext(time.Second)
	c.stopCalls()
	if len(waits) != 3 {
		t.Fatalf("%d waits have ended, want 3", len(waits))
	}
	for _, err := range waits {
		if err == nil {
			t.Error("a wait of a call that was broken off has no error")
		}
	}
}
