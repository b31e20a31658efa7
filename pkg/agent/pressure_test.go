package agent

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

func TestSpareWaitsLongerThanTheAccountWasShort(t *testing.T) {
	for _, draw := range []float64{0, 0.5, 0.999} {
		var p pressure
		if p.high(0) || p.high(time.Hour) || p.lacking(time.Hour).high(time.Hour) {
			t.Error("nothing was refused and the account counts as short")
		}
		start := time.Hour
		p = p.refused(start, draw)
		for at := start; at < start+time.Minute; at += 2 * time.Second {
			p = p.lacking(at) // one refusal, and pods that lack addresses after it
		}
		end := p.last
		if !p.high(end+(end-start)*spareFactor-1) || p.high(end+2*(end-start)*spareFactor) {
			t.Errorf("draw %g: short for %s, and it eases %s after", draw, end-start, p.eases()-end)
		}
		if again := p.refused(p.eases(), draw); again.from != start || again.lasts() <= p.lasts() {
			t.Errorf("draw %g: refused when it should have eased, it is short for %s", draw, again.lasts())
		}
		if later := p.refused(end+time.Hour, draw); later.lasts() != leastPressure {
			t.Errorf("draw %g: a refusal an hour later counts for %s", draw, later.lasts())
		}
		long := p
		long.last = start + 24*time.Hour
		if wait := long.eases() - long.last; wait > 2*spareFactor*mostPressure {
			t.Errorf("draw %g: after a day spare waits for %s", draw, wait)
		}
	}
}

// Pods may lack addresses for ever for another reason, such as a full subnet. Only describes
// tell when that is over, and they are rare as long as the account counts as short.
func TestPodsThatLackAddressesForLongKeepNoAccountShort(t *testing.T) {
	p := pressure{}.refused(time.Hour, 1)
	for at := time.Hour; at < 3*time.Hour; at += time.Second {
		p = p.lacking(at)
	}
	if p.high(2 * time.Hour) {
		t.Errorf("after one refusal the account is short for %s", p.eases()-time.Hour)
	}
}

// The last of the nodes waits for a part of what all of them together took.
func TestWhoIsRefusedComesBackAfterAPartOfTheTime(t *testing.T) {
	start := time.Hour
	p := pressure{}.refused(start, 0)
	if got := p.retry(grows, 0).most; got != time.Second {
		t.Errorf("the first time after %s", got)
	}
	for _, since := range []time.Duration{0, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour} {
		p.last = start + since
		for _, c := range []class{looks, grows, gives} {
			if got := p.retry(c, 12).most; got > max(24*time.Second, since/8) || got < since/16 {
				t.Errorf("%s, refused for %s: again after %s", c, since, got)
			}
		}
	}
}

// An account that is short for a day makes nobody wait for hours, and who is refused once
// that day comes back soon.
func TestWhoIsRefusedForADayComesBackInMinutes(t *testing.T) {
	p := pressure{}.refused(time.Hour, 0)
	p.last = 25 * time.Hour
	for _, c := range []class{looks, grows, gives} {
		if got := p.retry(c, 1000).most; got != mostRetry {
			t.Errorf("%s, refused for a day: again after %s", c, got)
		}
		if got := p.retry(c, 0).most; got > 3*time.Second {
			t.Errorf("%s, refused once: again after %s", c, got)
		}
	}
}

// What is refused of one kind of calls passes of others, whose buckets are their own. Looks
// that nothing asks for become rare, unless it is releases that are refused, and one that was
// asked for is made again.
func TestARefusalHoldsOnlyCallsOfItsKind(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	for op, c := range map[string]class{"Describe": looks, "AssignAddresses": grows, "UnassignAddresses": gives, "DeleteInterface": gives} {
		a := w.addNode(testConfig("n-"+op), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
		now := time.Hour
		a.view.start, a.describeAt = now, now+a.describeEvery(now)
		usual := a.describeAt - now
		a.applyResult(result{call: &call{key: eniKey("x"), id: "x", op: op, urgent: op == "Describe"}, err: cloud.ErrThrottled}, now)
		for _, other := range []class{looks, grows, gives} {
			if got := a.refuses(other, now); got != (other == c) {
				t.Errorf("%s refused: %s left alone: %t", op, other, got)
			}
		}
		again := a.urgent && a.lookDue(now) <= now
		if again != (op == "Describe") {
			t.Errorf("%s refused: asks for a describe at once: %t", op, again)
		}
		rare := a.lookDue(now) - now
		if c == gives && rare != usual || c == grows && rare < 5*usual {
			t.Errorf("%s refused: the next describe comes after %s in place of %s", op, rare, usual)
		}
	}
}
