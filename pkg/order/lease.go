package order

import (
	"encoding/base32"
	"fmt"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/digest"
)

// Lease is what makes one operator the leader. Times of a leader are on its monotonic clock.
type Lease struct {
	Duration time.Duration // after the last renewal it is another's to take
	Settle   time.Duration // how long the cloud may go on showing the past
	// Fence is how long a call that was sent may still take effect, with Settle after it: the validity of a signed request
	// and the clouds' lag. It is for calls of which nobody knows the outcome.
	Fence time.Duration
}

// Validate returns why calls with the timeout can't be made under the lease, or nil: a leader that renewed a moment ago
// must be able to make one.
func (l Lease) Validate(timeout time.Duration) error {
	switch {
	case timeout <= 0 || l.Settle < 0:
		return fmt.Errorf("timeout %s, settle %s: must be positive", timeout, l.Settle)
	case timeout >= l.Duration:
		return fmt.Errorf("timeout %s: must be less than the lease, %s, or the leader never makes a call", timeout, l.Duration)
	case l.Fence < timeout+l.Settle:
		return fmt.Errorf("fence %s: must be at least the timeout and settle, %s", l.Fence, timeout+l.Settle)
	}
	return nil
}

// MayCall tells whether a leader may send a call with the timeout now (S6). It is asked immediately before: a leader that was
// stopped meanwhile sends nothing.
func (l Lease) MayCall(now, renewed, timeout time.Duration) bool {
	return now+timeout < renewed+l.Duration
}

// MayDescribe tells whether a describe that began then tells a leader the truth about what leaders before it did (S8): acquired
// is when it got the lease.
func (l Lease) MayDescribe(began, acquired time.Duration) bool { return began >= acquired+l.Settle }

// NextEpoch returns the number of a new leader: above all that the lease and the nodes' statuses show.
func NextEpoch(lease int64, statuses ...int64) int64 {
	for _, e := range statuses {
		lease = max(lease, e)
	}
	return lease + 1
}

// Token returns the token that a node's next ENI is made with, 32 characters. It follows from what is written down, so that
// who comes after a crash asks for the same ENI: uid is the object's, created the serial of the latest ENI.
func Token(uid string, created int64) string {
	sum := digest.Sum256(uid + "|" + strconv.FormatInt(created+1, 10))
	return base32.StdEncoding.EncodeToString(sum[:])[:32]
}
