package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// generator makes up the pods of one node.
type generator struct {
	rng   *rand.Rand
	usual int           // number of pods at once
	end   time.Duration // of the load
	pods  []Pod
	free  []int // positions in pods of those that stopPod may end
}

// randomBetween is a time of at least a and less than b.
func (g *generator) randomBetween(a, b time.Duration) time.Duration {
	return a + time.Duration(g.rng.Int64N(int64((b-a)/time.Millisecond)))*time.Millisecond
}

// randomAbout is a random time with an exponential distribution of that mean: how long is still
// to go does not depend on how long it has been.
func (g *generator) randomAbout(mean time.Duration) time.Duration {
	return time.Duration(g.rng.ExpFloat64() * float64(mean)).Round(time.Millisecond)
}

// addPod adds a pod that runs from start to end, if it starts before the load ends.
func (g *generator) addPod(start, end time.Duration) {
	if start < g.end {
		g.pods = append(g.pods, Pod{Start: start, End: min(max(end, start+shortest), g.end)})
	}
}

// startPod adds a pod that runs until stopPod ends it.
func (g *generator) startPod(at time.Duration) {
	if at < g.end {
		g.free = append(g.free, len(g.pods))
		g.addPod(at, g.end)
	}
}

// stopPod ends a random one of the pods that run.
func (g *generator) stopPod(at time.Duration) {
	i := g.rng.IntN(len(g.free))
	last := len(g.free) - 1
	p := &g.pods[g.free[i]]
	p.End = min(max(at, p.Start+shortest), g.end)
	g.free[i], g.free = g.free[last], g.free[:last]
}

func (g *generator) steady() { g.replacePods(g.usual) }

// replacePods adds n pods, each of which is replaced about every three days.
func (g *generator) replacePods(n int) {
	for range n {
		for at := time.Duration(0); at < g.end; {
			end := at + g.randomAbout(3*24*time.Hour)
			g.addPod(at, end)
			at = max(end, at+shortest) + g.randomBetween(time.Second, 10*time.Second)
		}
	}
}

// burst has its next burst when the one before is over.
func (g *generator) burst() {
	half := g.usual / 2
	g.replacePods(half)
	gap := func() time.Duration { return 16*time.Minute + g.randomAbout(150*time.Minute) }
	for at := gap(); at < g.end; at += gap() {
		within := g.randomBetween(5*time.Second, 30*time.Second)
		for range g.usual - half + g.rng.IntN(half+1) {
			start := at + g.randomBetween(0, within)
			g.addPod(start, start+g.randomBetween(3*time.Minute, 15*time.Minute))
		}
	}
}

// atOnce are pods whose ADDs the runtime makes within seconds.
func (g *generator) atOnce() {
	for range g.usual {
		g.addPod(g.randomBetween(time.Millisecond, 3*time.Second), g.end)
	}
}

// rollingUpdate is a Deployment's with maxSurge 25 %: an old pod is told to end when
// a new one is ready.
func (g *generator) rollingUpdate() {
	starts := make([]time.Duration, g.usual)
	surge := (g.usual + 3) / 4
	for at := g.randomBetween(5*time.Minute, time.Hour); at < g.end; at += g.randomBetween(2*time.Hour, 5*time.Hour) {
		for i := 0; i < g.usual; i += surge {
			over := at
			for j := i; j < min(i+surge, g.usual); j++ {
				start := at + g.randomBetween(0, 5*time.Second)
				end := start + g.randomBetween(5*time.Second, 20*time.Second) + g.randomBetween(time.Second, 10*time.Second)
				g.addPod(starts[j], end)
				starts[j], over = start, max(over, end)
			}
			at = over + time.Second
		}
	}
	for _, start := range starts {
		g.addPod(start, g.end)
	}
}

// cron has jobs of every five minutes, and twice as many of every hour; about half
// of them run on this node. They are over before the next ones come.
func (g *generator) cron() {
	half := g.usual / 2
	g.replacePods(half)
	const every = 5 * time.Minute
	for at := every; at < g.end; at += every {
		jobs := g.jobsHere(g.usual - half)
		if at%time.Hour == 0 {
			jobs += g.jobsHere(g.usual)
		}
		for range jobs {
			start := at + g.randomBetween(0, 3*time.Second) // the controller makes them one after another
			g.addPod(start, start+g.randomBetween(30*time.Second, 4*time.Minute))
		}
	}
}

// jobsHere is how many of n jobs the scheduler puts here, where each is as likely to be
// as not.
func (g *generator) jobsHere(n int) int {
	here := 0
	for range n {
		here += g.rng.IntN(2)
	}
	return here
}

// diurnal starts at midnight. Its noise fades in half an hour.
func (g *generator) diurnal() {
	const step = 15 * time.Second
	least := (g.usual + 4) / 5
	podsAt := func(at time.Duration, noise float64) int {
		day := (1 - math.Cos(2*math.Pi*at.Hours()/24)) / 2
		n := float64(g.usual) * (0.2 + 0.8*day + noise)
		return min(max(int(math.Round(n)), least), g.usual)
	}
	for range podsAt(0, 0) {
		g.startPod(0)
	}
	noise := 0.0
	for at := step; at < g.end; at += step {
		// 120 steps are half an hour. Noise of each step alone would make pods come and go at each.
		noise += -noise/120 + 0.003*g.rng.NormFloat64()
		switch n := podsAt(at, noise); {
		case n > len(g.free):
			g.startPod(at + g.randomBetween(0, step))
		case n < len(g.free):
			g.stopPod(at + g.randomBetween(0, step))
		}
	}
}

// churn has pods with Poisson arrivals and exponential lives. Pods for which there is no room
// go to other nodes.
func (g *generator) churn() {
	const life = 12 * time.Minute
	for range g.usual {
		g.startPod(0)
	}
	at := time.Duration(0)
	for at < g.end {
		rate := g.usual + len(g.free) // of arrivals and ends, in a life
		at += g.randomAbout(life / time.Duration(rate))
		if g.rng.IntN(rate) >= g.usual {
			g.stopPod(at)
		} else if len(g.free) < 2*g.usual {
			g.startPod(at)
		}
	}
}
