package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

func TestCallsThatFailTogetherAreOneFailure(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b, s, f := backoffs{}, of(grows), failure{delay: delay{time.Second, time.Minute}}
	for range 5 {
		b.fail(s, f, time.Hour, r)
	}
	if got := b[s]; got.times != 1 || got.until > time.Hour+time.Second {
		t.Errorf("five that failed together: %d times, left alone for %s", got.times, got.until-time.Hour)
	}
	f.atLeast = time.Minute
	b.fail(s, f, time.Hour, r)
	if got := b[s]; got.until < time.Hour+time.Minute {
		t.Errorf("who asks for a minute gets %s", got.until-time.Hour)
	}
}

// Full jitter: what is drawn fills all of the time from the least to the most, which doubles.
func TestADelayIsDrawnFromAllOfTheTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := releasesOf("eni-1")
	for _, atLeast := range []time.Duration{0, 20 * time.Second} {
		f := failure{delay: delay{time.Second, time.Minute}, atLeast: atLeast}
		var tenths [10][10]int // of the nth failure in a row
		for range 1000 {
			b, now := backoffs{}, time.Hour
			for times := range tenths {
				b.fail(s, f, now, r)
				least, most := leastDelay, min(time.Second<<times, time.Minute)
				if atLeast > 0 {
					least, most = atLeast, atLeast+most
				}
				wait := b[s].until - now
				if wait < least || wait > most {
					t.Fatalf("after %d failures in a row it is left alone for %s, want %s to %s", times+1, wait, least, most)
				}
				tenths[times][min(9, 10*(wait-least)/(most-least))]++
				now = b[s].until
			}
		}
		for times, counts := range tenths {
			for i, n := range counts {
				if n < 50 || n > 150 {
					t.Errorf("after %d failures %d of 1000 draws fall into the tenth %d: %v", times+1, n, i, counts)
				}
			}
		}
	}
}

// The same draws give the same delays: the agent's source is all that they depend on.
func TestDelaysDependOnTheSourceAlone(t *testing.T) {
	play := func() (list []time.Duration) {
		r, b := rand.New(rand.NewPCG(3, 4)), backoffs{}
		for i := range 20 {
			s := []scope{of(looks), assignsTo("eni-1"), fullSubnet("subnet-a")}[i%3]
			b.fail(s, failure{delay: delay{10 * time.Second, 5 * time.Minute}}, time.Duration(i)*time.Minute, r)
			list = append(list, b[s].until)
		}
		return list
	}
	first := play()
	for i, until := range play() {
		if until != first[i] {
			t.Errorf("draw %d: %s and %s", i, first[i], until)
		}
	}
}

// One ENI whose calls the cloud is unavailable for says little of the others: what is left alone
// for its sake does not double, until another object fails as well.
func TestAClassIsLeftAloneForLongOnlyWhereSeveralObjectsFail(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b, now := backoffs{}, time.Hour
	fail := func(id string) time.Duration {
		b.fail(of(grows), failure{delay: delayRetry, by: eniKey(id), err: cloud.ErrUnavailable}, now, r)
		wait := b[of(grows)].until - now
		now += wait
		return wait
	}
	for range 50 {
		if wait := fail("eni-1"); wait > delayRetry.first {
			t.Fatalf("for one ENI all wait for %s", wait)
		}
	}
	longest := time.Duration(0)
	for range 20 {
		longest = max(longest, fail("eni-1"), fail("eni-2"))
	}
	if longest < delayRetry.most/2 || longest > delayRetry.most {
		t.Errorf("when all fail the longest wait is %s, want up to %s", longest, delayRetry.most)
	}
}
