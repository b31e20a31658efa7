package aws

import (
	"errors"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/driver"
)

// What budgets and simulations believe of repeated reads is what the SDK does.
func TestRetriesAreThoseOfTheSDK(t *testing.T) {
	sdk, want := New(Options{}).retryer(), Traits().Retries
	if sdk.MaxAttempts() != want.Tries {
		t.Errorf("the SDK tries %d times, Retries say %d", sdk.MaxAttempts(), want.Tries)
	}
	for try := 1; try < want.Tries; try++ {
		longest := time.Duration(0)
		for range 2000 {
			pause, err := sdk.RetryDelay(try, errors.New("throttled"))
			must(t, err)
			longest = max(longest, pause)
		}
		most, _ := want.Pause(try, func(most time.Duration) time.Duration { return most })
		if longest > most || longest < most*9/10 {
			t.Errorf("after try %d the SDK pauses for up to %s, Retries say %s", try, longest, most)
		}
	}
	if _, more := (driver.Retries{Tries: 3}).Pause(3, nil); more {
		t.Error("there is a fourth try of three")
	}
}
