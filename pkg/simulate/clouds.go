package simulate

import (
	"maps"
	"time"

	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Rates are what a cloud lets pass, and of what requests its driver makes calls.
type Rates struct {
	Driver               *driver.Traits // nil: calls are counted, and not requests
	Mutating, Describing sim.Bucket     // of each action without an entry in Buckets
	Buckets              map[string]sim.Bucket
}

// EC2 returns the rates of an account of AWS in a region: each action has its own
// bucket, of which all nodes drink.
func EC2() Rates { return ratesOf(aws.Traits(), perSecond(100, 5), perSecond(100, 20)) }

// BCE returns the rates of Baidu's cloud. Its limits are not published: the numbers are
// those to which Baidu's own driver keeps, if it is told to, for all nodes together.
func BCE() Rates { return ratesOf(bce.Traits(), perSecond(30, 20), perSecond(30, 20)) }

// ratesOf are the buckets that a driver knows, and others for what it knows none of.
func ratesOf(t driver.Traits, mutating, describing sim.Bucket) Rates {
	r := Rates{Driver: &t, Mutating: mutating, Describing: describing, Buckets: map[string]sim.Bucket{}}
	looking := t.Looking()
	for action, b := range t.Buckets {
		usual, own := mutating, sim.Bucket{Burst: b.Burst, Every: time.Duration(float64(time.Second) / b.PerSecond)}
		if looking[action] {
			usual = describing
		}
		if own != usual {
			r.Buckets[action] = own
		}
	}
	return r
}

// Level makes the actions that look, or those that don't, have the same rate.
func (r Rates) Level(looks bool) {
	if r.Driver == nil {
		return
	}
	looking := r.Driver.Looking()
	maps.DeleteFunc(r.Buckets, func(action string, _ sim.Bucket) bool { return looking[action] == looks })
}

// perSecond is a bucket of so many, with so many more each second.
func perSecond(burst, rate int) sim.Bucket {
	return sim.Bucket{Burst: burst, Every: time.Second / time.Duration(rate)}
}

// bucketFor returns the bucket of an action.
func (w World) bucketFor(action string, looks bool) sim.Bucket {
	b, own := w.Buckets[action]
	switch {
	case own:
		return b
	case looks:
		return w.Describing
	}
	return w.Mutating
}
