package agent

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestCallsThatFailTogetherAreOneFailure(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	d := delay{time.Second, time.Minute}
	h := holds{}
	for range 5 {
		h.fail("cloud", d, 0, time.Hour, r)
	}
	if got := h["cloud"]; got.times != 1 || got.until > time.Hour+1200*time.Millisecond {
		t.Errorf("five that failed together: %d times, left alone for %s", got.times, got.until-time.Hour)
	}
	h.fail("cloud", d, time.Minute, time.Hour, r)
	if got := h["cloud"]; got.until < time.Hour+time.Minute {
		t.Errorf("who asks for a minute gets %s", got.until-time.Hour)
	}
	h.clear("cloud")
	now := time.Hour
	for times := range 10 {
		h.fail("cloud", d, 0, now, r)
		want := min(time.Second<<times, time.Minute)
		if wait := h["cloud"].until - now; wait < want*8/10 || wait > want*12/10 {
			t.Errorf("after %d failures in a row it is left alone for %s, want about %s", times+1, wait, want)
		}
		now = h["cloud"].until
	}
}
