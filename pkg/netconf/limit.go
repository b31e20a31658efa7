package netconf

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
)

// Limit is a rate of traffic, and how much may pass at once after a pause. The
// zero Limit is none.
type Limit struct {
	Rate  uint64 // bits per second
	Burst uint64 // bits
}

// String returns the limit for people.
func (l Limit) String() string { return fmt.Sprintf("%d bit/s, burst %d bit", l.Rate, l.Burst) }

// Limits are those of a pod: Ingress of what it receives, Egress of what it sends.
type Limits struct{ Ingress, Egress Limit }

// limitLatency is how long a packet waits at most before it is dropped, in
// milliseconds; the bandwidth plugin has the same.
const limitLatency = 25

// Same tells whether the kernel makes the same of both. It counts in bytes, not bits, and
// what may wait holds the burst too.
func (l Limits) Same(other Limits) bool {
	same := func(a, b Limit) bool {
		have, want := a.Bucket(), b.Bucket()
		return have.Rate == want.Rate && have.Limit == want.Limit
	}
	return same(l.Ingress, other.Ingress) && same(l.Egress, other.Egress)
}

// Bucket is a limit in the terms of the kernel's token bucket (sch_tbf).
type Bucket struct {
	Rate  uint64 // bytes per second
	Burst uint32 // bytes
	Limit uint32 // bytes that may wait
}

// Bucket returns the token bucket of the limit, with the bandwidth plugin's
// arithmetic.
func (l Limit) Bucket() Bucket {
	b := Bucket{Rate: l.Rate / 8, Burst: uint32(min(l.Burst/8, math.MaxUint32))}
	waiting := float64(b.Rate)*limitLatency/1000 + float64(b.Burst)
	b.Limit = uint32(min(waiting, math.MaxUint32))
	return b
}

// Restored returns the limit that a bucket of ours stands for. The kernel tells the burst in
// ticks, but what may wait holds it too.
func (b Bucket) Restored() Limit {
	burst := b.Limit - min(b.Limit, uint32(min(float64(b.Rate)*limitLatency/1000, math.MaxUint32)))
	return Limit{Rate: b.Rate * 8, Burst: uint64(burst) * 8}
}

// String returns the bucket in the words of tc.
func (b Bucket) String() string {
	return fmt.Sprintf("tbf rate %d bytes/s burst %d limit %d", b.Rate, b.Burst, b.Limit)
}

// LimitPrefix begins the name of every link of ours that an egress limit needs.
// It differs from VethPrefix, by which pods' links are told.
const LimitPrefix = "enb"

// LimitDevice returns the name of the link that what the pod sends is held back
// on. It is derived like HostDevice, so that no record is needed to remove it.
func LimitDevice(k eni.Key) string {
	sum := keySum(k)
	return LimitPrefix + hex.EncodeToString(sum[:6])[:11]
}

// LimitDeviceBeside returns the LimitDevice of the pod whose link on the node is hostDev.
func LimitDeviceBeside(hostDev string) string {
	return LimitPrefix + strings.TrimPrefix(hostDev, VethPrefix)
}

// LimitError tells that a pod's limits could not be put back. It is about that pod only:
// all that the node and other pods need may be in place.
type LimitError struct {
	Pod string
	Err error
}

// Error names the pod.
func (e *LimitError) Error() string { return "limits of pod " + e.Pod + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *LimitError) Unwrap() error { return e.Err }

// OnlyLimits tells whether err is made up of LimitErrors.
func OnlyLimits(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !OnlyLimits(e) })
	}
	_, ok := err.(*LimitError)
	return ok
}

// Extras is what a pod asks for beyond its addresses.
type Extras struct {
	Ports  []HostPort
	Limits Limits
}

// IsZero tells whether the pod asks for nothing.
func (e Extras) IsZero() bool { return len(e.Ports) == 0 && e.Limits == Limits{} }
