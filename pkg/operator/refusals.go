package operator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// refusals are what the cloud refused lately, and what is not known of its answers.
type refusals struct {
	noMore map[string]pool.Cause    // by ENI: why it gets no addresses, until Next
	stays  map[string]time.Duration // by ENI: until when nothing of it is released
	noNew  pool.Cause               // why no ENI is made, until Next
	unsure map[string]time.Duration // ENIs of whose last call nobody knows the outcome, and since when; "" for one that was being made
	pauses map[attempt]pause        // of calls that brought nothing
}

// attempt is what a call does and what it is about: the ENI, or the subnet of one that is to be made. What is refused in one place is
// tried in another.
type attempt struct {
	do     pool.Action
	object string
}

func attemptOf(s pool.Step) attempt {
	if s.Do == pool.Create {
		return attempt{s.Do, s.Subnet}
	}
	return attempt{s.Do, s.ENI}
}

// pause is the back-off of an attempt.
type pause struct {
	misses int           // calls in a row that brought nothing
	until  time.Duration // no such call before that
	why    pool.Cause    // of the last miss, told until Next
}

// The back-off of what brings nothing, from the second such call on, and of an ENI or an action that was refused.
const (
	firstPause = 30 * time.Second
	lastPause  = 10 * time.Minute
)

// noteProgress takes in whether a call brought anything.
func (m *member) noteProgress(step pool.Step, done bool, why pool.Cause, now time.Duration) {
	key := attemptOf(step)
	maps.DeleteFunc(m.pauses, func(_ attempt, p pause) bool { return now >= p.why.Next+lastPause })
	if done {
		delete(m.pauses, key)
		return
	}
	p := m.pauses[key]
	p.misses++
	p.why = why
	if p.misses >= 2 {
		p.until = now + min(lastPause, firstPause<<min(p.misses-2, 10))
	}
	p.why.Next = max(p.until, now+firstPause)
	m.pauses[key] = p
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
		why.Kind = order.AccountLimit // the plan has seen to the limits of the instance
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
	there := map[string]bool{subnet: true}
	for _, e := range m.view.Status.ENIs {
		if there[e.ID] = e.Subnet == subnet; e.Subnet == subnet && m.noMore[e.ID].Kind == pool.SubnetFull {
			delete(m.noMore, e.ID)
		}
	}
	for key, p := range m.pauses {
		if there[key.object] && p.why.Kind == pool.SubnetFull {
			p.misses, p.until = 0, 0
			m.pauses[key] = p
		}
	}
}

// causeOf returns what a failed call is a cause of: what it is to an agent that calls the cloud itself.
func causeOf(err error) pool.Cause {
	return pool.Cause{Kind: cloud.MeaningOf(err).Cause, Words: fmt.Sprint("the cloud: ", err)}
}

// ownCauses returns why there is not more that a plan does not know of.
func (m *member) ownCauses(now time.Duration) (list []pool.Cause) {
	switch {
	case m.rival != "":
		list = append(list, pool.Cause{Kind: pool.WrongInstance, Words: fmt.Sprintf("Node %s has the same instance by its provider ID, and had it first; delete the Node that is no more", m.rival)})
	case m.node.Instance == "":
		list = append(list, pool.Cause{Kind: pool.WrongInstance, Words: "the Node has no provider ID, which names its instance: the kubelet's --provider-id or the cloud's node controller sets it"})
	case m.shown != nil && m.shown.view.Err != nil:
		c := causeOf(m.shown.view.Err)
		if errors.Is(m.shown.view.Err, cloud.ErrNotFound) {
			c.Kind = pool.WrongInstance
		}
		list = append(list, c)
	case m.limits == (eni.Limits{}) && m.unlimited.isProof(m.term.Lease.Settle):
		list = append(list, causeOf(m.noLimits))
	}
	keys := slices.SortedFunc(maps.Keys(m.pauses), func(a, b attempt) int {
		return cmp.Or(cmp.Compare(a.do, b.do), cmp.Compare(a.object, b.object))
	})
	for _, key := range keys {
		if why := m.pauses[key].why; why.Next > now {
			list = append(list, why)
		}
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
