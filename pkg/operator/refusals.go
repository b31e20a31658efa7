package operator

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// refusals are what the cloud refused lately, and what is not known of its answers.
type refusals struct {
	noMore map[string]pool.Cause    // by ENI: why it gets no addresses, until Next
	stays  map[string]time.Duration // by ENI: until when nothing of it is released
	noNew  pool.Cause               // why no ENI is made, until Next
	unsure map[string]time.Duration // ENIs of whose last call nobody knows the outcome, and since when; "" for one that was being made
	misses int                      // calls in a row that brought nothing
	until  time.Duration            // no call before that
	why    pool.Cause               // of the last miss
}

// The back-off of a node whose calls bring nothing, from the second such call on, and of an ENI or an action that was refused.
const (
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// noteProgress takes in whether a call brought anything.
func (m *member) noteProgress(done bool, why pool.Cause, now time.Duration) {
	if done {
		m.misses, m.until = 0, 0
		return
	}
	m.misses++
	m.why = why
	if m.misses >= 2 {
		m.until = now + min(lastPause, firstPause<<min(m.misses-2, 10))
	}
	m.why.Next = max(m.until, now+firstPause)
}

// noteRefused takes in why a call failed: what it was about is left alone for a while.
func (m *member) noteRefused(failed *job, err error, now time.Duration) pool.Cause {
	why := causeOf(err)
	why.Object, why.Next = cmp.Or(failed.ENI, failed.Subnet), now+firstPause
	if errors.Is(err, cloud.ErrUnknown) {
		m.unsure[failed.ENI] = now
	}
	switch {
	case failed.Do == pool.Assign && (errors.Is(err, cloud.ErrLimit) || errors.Is(err, cloud.ErrSubnetFull) || errors.Is(err, cloud.ErrForbidden)):
		m.noMore[failed.ENI] = why
	case failed.Do == pool.Create && errors.Is(err, cloud.ErrLimit):
		why.Kind = accountLimit // the plan has seen to the limits of the instance
		m.noNew = why
	case failed.Do == pool.Create && errors.Is(err, cloud.ErrForbidden):
		m.noNew = why
	case (failed.Do == pool.Release || failed.Do == pool.Delete) && errors.Is(err, cloud.ErrForbidden):
		m.stays[failed.ENI] = now + lastPause
	}
	return why
}

// forgetFull forgets what was refused because the subnet had no address.
func (m *member) forgetFull(subnet string) {
	for _, e := range m.view.Status.ENIs {
		if e.Subnet == subnet && m.noMore[e.ID].Kind == pool.SubnetFull {
			delete(m.noMore, e.ID)
		}
	}
	if m.why.Kind == pool.SubnetFull {
		m.misses, m.until = 0, 0
	}
}

// causeOf returns what a failed call is a cause of.
func causeOf(err error) pool.Cause {
	cause := pool.Cause{Kind: pool.CallFailed, Words: fmt.Sprint("the cloud: ", err)}
	for _, known := range []struct {
		err  error
		kind pool.Kind
	}{
		{cloud.ErrThrottled, pool.Throttled}, {cloud.ErrSubnetFull, pool.SubnetFull}, {cloud.ErrLimit, pool.ENILimit},
		{cloud.ErrForbidden, pool.Forbidden}, {cloud.ErrUnavailable, pool.Unavailable},
	} {
		if errors.Is(err, known.err) {
			cause.Kind = known.kind
		}
	}
	return cause
}

// ownCauses returns why there is not more that a plan does not know of.
func (m *member) ownCauses(now time.Duration) (list []pool.Cause) {
	switch {
	case m.node.Instance == "":
		list = append(list, pool.Cause{Kind: noInstance, Words: "the Node has no provider ID"})
	case m.shown != nil && m.shown.view.Err != nil:
		c := causeOf(m.shown.view.Err)
		if errors.Is(m.shown.view.Err, cloud.ErrNotFound) {
			c.Kind = noInstance
		}
		list = append(list, c)
	}
	if m.why.Next > now {
		list = append(list, m.why)
	}
	return list
}

// unsureTokens returns the token of an ENI that may have been made, if there may be one.
func (m *member) unsureTokens() []string {
	if _, unsure := m.unsure[""]; unsure && m.network != nil {
		return []string{order.Token(string(m.network.UID), m.network.Status.Created)}
	}
	return nil
}
