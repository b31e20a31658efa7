package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
)

var sampleNames = []string{"batch:B=16,mf=0.5", "burstable", "besteffort:preAllocate=8", "reactive",
	"batch:B=8,mf=0.25", "batch:B=32,mf=1", "besteffort:preAllocate=16,minAllocate=20", "batch:B=64"}

// sample is the report of a day that looks like one, but was made up.
func sample(settings, bins int) Report {
	const day = 24 * time.Hour
	world := simulate.World{
		Limits: eni.Limits{ENIs: 8, V4: 30}, MaxPods: 200,
		Subnets: []simulate.Subnet{
			{ID: "subnet-a", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Taken: 12},
			{ID: "subnet-b", CIDR: netip.MustParsePrefix("10.0.1.0/24")},
		},
		Latency: map[string]sim.Latency{
			"":                {Base: 100 * time.Millisecond, Jitter: 50 * time.Millisecond},
			"CreateInterface": {Base: 2 * time.Second, Jitter: time.Second},
		},
		Mutating: sim.Bucket{Burst: 20, Every: 200 * time.Millisecond},
		Lead:     500 * time.Millisecond, Wait: 5 * time.Second, Seed: 7,
	}
	var results []simulate.Result
	for i := range settings {
		name := fmt.Sprint("setting ", i+1)
		if i < len(sampleNames) {
			name = sampleNames[i]
		}
		results = append(results, madeUp(name, i, bins, day))
	}
	load := simulate.Load{Name: "diurnal", Duration: day, Nodes: [][]simulate.Pod{make([]simulate.Pod, 12345)}}
	return New("v0.4.0", world, load, results)
}

// madeUp is a setting whose pool follows the demand the worse the higher its number.
func madeUp(name string, number, bins int, length time.Duration) simulate.Result {
	r := simulate.Result{Name: name, Pods: 12345, Series: make([]simulate.Bin, bins)}
	load, random := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(number)))
	batch := []int{16, 29, 8, 1, 8, 32, 16, 64}[number%8]
	step := length / time.Duration(max(bins, 1))
	owned := batch
	for i := range r.Series {
		hour := (time.Duration(i) * step).Hours()
		demand := 20 + int(70-70*math.Cos(hour/12*math.Pi)) + load.IntN(6)
		if hour >= 14 && hour < 14.4 {
			demand += 45
		}
		b := simulate.Bin{Start: simulate.Seconds(time.Duration(i) * step), Demand: demand, Target: (demand+batch-1)/batch*batch + batch/2}
		if b.Demand > owned {
			b.Waiting = (demand-owned)/3 + number%4
			b.Longest = simulate.Seconds(time.Duration(random.IntN(900)+100*b.Waiting) * time.Millisecond)
		}
		if b.Target > owned || b.Target < owned-2*batch {
			owned, b.Calls = b.Target, 1+(b.Target-owned+200)/100
		}
		b.Owned, b.Free, b.Describes = owned, max(owned-demand-load.IntN(4), 0), (i+1)%5/4
		b.Idle = owned - min(demand, owned)
		add(&r, b, step)
	}
	r.Waits.P50, r.Waits.P99 = simulate.Seconds(number)*r.Waits.Max/50, r.Waits.Max*3/4
	r.Idle.Mean = r.Idle.AddressHours / length.Hours()
	r.Calls.Assign -= r.Calls.Attachments
	r.Calls.Flaps, r.Calls.Throttled = number*number, number%3*4
	return r
}

// add adds a bin's share to the sums of the result.
func add(r *simulate.Result, b simulate.Bin, step time.Duration) {
	r.Series[int(time.Duration(b.Start)/step)] = b
	r.Waits.Max, r.Waits.Waited = max(r.Waits.Max, b.Longest), r.Waits.Waited+b.Waiting
	if b.Longest > simulate.Seconds(5*time.Second) {
		r.Waits.Failed++
	}
	idle := b.Owned - b.Demand + b.Waiting
	r.Idle.Max = max(r.Idle.Max, idle)
	r.Idle.AddressHours += float64(idle) * step.Hours()
	r.Calls.Total, r.Calls.Describe = r.Calls.Total+b.Calls+b.Describes, r.Calls.Describe+b.Describes
	r.Calls.Assign += b.Calls
	r.Calls.Attachments = max(r.Calls.Attachments, b.Owned/29)
}
