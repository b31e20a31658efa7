package cni

import (
	"errors"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/ipam"
)

// tellAgentAway adds to an error that an agent would cure that none is at work, and what the
// last one said. nodecache.ErrMissing is not among them: its text says so already.
func (p *Plugin) tellAgentAway(err error) error {
	if !isCuredByAgent(err) {
		return err
	}
	away := p.Cache.AgentAway()
	if away == "" {
		return err
	}
	if most, told := p.Cache.Most(); told && isFull(err, most) {
		away = fmt.Sprintf("all %d of at most %[1]d addresses are used, and an agent can't add any: move pods to other nodes; %s", most, away)
	}
	if why := p.Cache.Why(); why != "" { // said by an agent that has ended: it may be old
		away += "; it last said: " + why
	}
	_, runs := p.Cache.Agent()
	return &awayError{err, away, runs}
}

// isFull tells whether pods have all that the node can hold: then neither an agent nor a cooldown brings more.
func isFull(err error, most int) bool {
	none, is := errors.AsType[*ipam.Exhausted](err)
	return is && none.Device == "" && slices.ContainsFunc(none.Tallies, func(t ipam.Tally) bool { return t.Used >= most })
}

// awayError is an error that an agent would cure, where none is at work.
type awayError struct {
	err  error
	away string
	runs bool // but is stopped
}

func (e *awayError) Error() string { return e.err.Error() + "; " + e.away }

func (e *awayError) Unwrap() error { return e.err }

// exhaustedDetails says what to do about a pool that is exhausted. An inventory is for nodes that have no agent.
func exhaustedDetails(err error) string {
	const look = "`enipoolctl pool show` names the pods that have addresses and those that wait"
	if away, is := errors.AsType[*awayError](err); is && !away.runs {
		return look + "; on a node without an agent: `enipoolctl pool load -f inventory.yaml` brings what is added to its inventory"
	}
	return look
}
