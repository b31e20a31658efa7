package simulate

import (
	"maps"
	"time"

	"github.com/enipool/enipool/pkg/cloud/aws"
	"github.com/enipool/enipool/pkg/cloud/bce"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Rates are how many requests a cloud lets pass, and which requests its driver makes of a call.
type Rates struct {
	Driver               *driver.Traits // nil: calls are counted, and not requests
	Mutating, Describing sim.Bucket     // of each action without an entry in Buckets
	Buckets              map[string]sim.Bucket
}

// EC2 returns the rates of an account of AWS in a region, with the buckets of pkg/cloud/aws: each
// action has one, from which all nodes of the account take.
func EC2() Rates { return ratesOf(aws.Traits(), perSecond(100, 5), perSecond(100, 20)) }

// BCE returns the rates of Baidu's cloud. Its limits are not published: the numbers are
// those to which Baidu's own driver keeps, if it is told to, for all nodes together.
func BCE() Rates { return ratesOf(bce.Traits(), perSecond(30, 20), perSecond(30, 20)) }

// ratesOf returns the buckets that a driver knows, and the given ones for all other actions.
func ratesOf(t driver.Traits, mutating, describing sim.Bucket) Rates {
	r := Rates{Driver: &t, Mutating: mutating, Describing: describing, Buckets: map[string]sim.Bucket{}}
	describes := t.Describing()
	for action, b := range t.Buckets {
		usual, own := mutating, sim.Bucket{Burst: b.Burst, Every: time.Duration(float64(time.Second) / b.PerSecond)}
		if describes[action] {
			usual = describing
		}
		if own != usual {
			r.Buckets[action] = own
		}
	}
	return r
}

// Level gives all actions that describe, or all that don't, the same rate: Describing or
// Mutating.
func (r Rates) Level(describes bool) {
	if r.Driver == nil {
		return
	}
	describing := r.Driver.Describing()
	maps.DeleteFunc(r.Buckets, func(action string, _ sim.Bucket) bool { return describing[action] == describes })
}

// perSecond is a bucket of burst requests, which gains rate of them each second.
func perSecond(burst, rate int) sim.Bucket {
	return sim.Bucket{Burst: burst, Every: time.Second / time.Duration(rate)}
}

// bucketFor returns the bucket of an action.
func (w World) bucketFor(action string, describes bool) sim.Bucket {
	b, own := w.Buckets[action]
	switch {
	case own:
		return b
	case describes:
		return w.Describing
	}
	return w.Mutating
}
