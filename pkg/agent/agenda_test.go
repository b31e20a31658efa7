package agent

import (
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func anyTime(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, what))
}

func anyAgenda(t *rapid.T) agenda {
	return agenda{describeAt: anyTime(t, "describe"), urgent: rapid.Bool().Draw(t, "urgent"), againAt: anyTime(t, "again"), heardAt: anyTime(t, "heard"), resyncAt: anyTime(t, "resync"),
		othersAt: anyTime(t, "others"), cooledAt: anyTime(t, "cooled"), occupied: rapid.Bool().Draw(t, "occupied"),
		hungry: rapid.Bool().Draw(t, "hungry"), rebuilt: rapid.IntRange(0, 5).Draw(t, "rebuilt") == 0}
}

// No sleep goes past anything that is due, or is longer than the period, or so short that the loop spins.
func TestNothingDueIsSleptThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now, most := anyAgenda(t), anyTime(t, "now"), anyTime(t, "most")+minTick
		besides := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration { return anyTime(t, "besides") }), 0, 3).Draw(t, "others'")
		in := g.untilNext(now, most, besides...)
		if in < minTick || in > most {
			t.Fatalf("it sleeps for %s, the period is %s", in, most)
		}
		reached := in == most || in == minTick
		for _, at := range append(besides, g.againAt, g.heardAt, g.resyncAt, g.othersAt, g.cooledAt) {
			if at > now && at < now+in && in > minTick {
				t.Fatalf("it sleeps for %s past what is due in %s", in, at-now)
			}
			reached = reached || at == now+in
		}
		if !reached {
			t.Fatalf("it wakes in %s for nothing", in)
		}
	})
}

// What a call's outcome asks for is looked at: through whatever else comes, until a look begins.
func TestALookThatWasAskedForComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now := anyAgenda(t), anyTime(t, "now")
		g.lookSoon(now)
		g.lookAgain(now + settled)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 4).Draw(t, "later")) * time.Second
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				g.begin()
			case 1:
				g.lookBy(anyTime(t, "by"))
			case 2:
				g.atMost(now, anyTime(t, "describes"), anyTime(t, "resyncs"))
			case 3:
				g.sawOthers(anyTime(t, "others again"))
			case 4:
				g.noteDescribe(now, now+time.Hour)
				if g.urgent || g.describeAt != now+time.Hour {
					t.Fatalf("after a look the next one is due at %s, urgent %t", g.describeAt, g.urgent)
				}
				return
			}
			if !g.urgent || g.describeAt > now {
				t.Fatalf("the look is put off to %s, urgent %t", g.describeAt, g.urgent)
			}
		}
	})
}

// Late effects stay on the agenda until a look that is late enough for them, whatever else asks for one, and
// nothing else makes it late. What waits for the last of several unknown outcomes waits for all of them.
func TestEachLateEffectIsLookedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now := agenda{}, time.Hour
		asked := map[string]time.Duration{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			at := now + time.Duration(rapid.IntRange(0, 60).Draw(t, "late by"))*time.Second
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				g.lookAgain(at)
				asked["own call"] = at
			case 1:
				g.lookForHeard(at)
				asked["earlier agent's"] = max(at, asked["earlier agent's"])
			case 2:
				now += g.untilNext(now, time.Minute)
			case 3:
				g.noteDescribe(now, now+time.Hour)
				maps.DeleteFunc(asked, func(_ string, at time.Duration) bool { return at <= now })
			}
			due := false
			for _, at := range asked {
				due = due || at <= now
			}
			if g.late(now) != due || g.awaitsLate() != (len(asked) > 0) {
				t.Fatalf("at %s late effects are looked for: %t, ever: %t; awaited are %v", now, g.late(now), g.awaitsLate(), asked)
			}
			for what, at := range asked {
				if in := g.untilNext(now, time.Hour); at > now && in > max(at-now, minTick) {
					t.Fatalf("it sleeps for %s past late effects of an %s in %s", in, what, at-now)
				}
			}
		}
	})
}

// A reload with shorter periods never puts anything off, and nothing is further away than the new periods.
func TestShorterPeriodsCountAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, now := anyAgenda(t), anyTime(t, "now")
		before, describe, resync := g, anyTime(t, "describes"), anyTime(t, "resyncs")
		g.atMost(now, describe, resync)
		if g.describeAt > before.describeAt || g.resyncAt > before.resyncAt || g.othersAt > before.othersAt {
			t.Fatalf("%+v\nbecame %+v", before, g)
		}
		if g.describeAt > now+describe || g.resyncAt > now+resync || g.othersAt > now+resync {
			t.Fatalf("with periods of %s and %s from %s: %+v", describe, resync, now, g)
		}
		before.describeAt, before.resyncAt, before.othersAt = g.describeAt, g.resyncAt, g.othersAt
		if g != before {
			t.Fatalf("it changed %+v, and is %+v", before, g)
		}
	})
}
