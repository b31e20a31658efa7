package cni

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// tellAgentAway adds to an error that an agent would cure that none is at work, and what the
// last one said. nodecache.ErrMissing is not among them: its text says so already.
func (p *Plugin) tellAgentAway(err error) error {
	if !curedByAgent(err) {
		return err
	}
	away := p.Cache.AgentAway()
	if away == "" {
		return err
	}
	if why := p.Cache.Why(); why != "" { // said by an agent that has ended: it may be old
		away += "; it last said: " + why
	}
	return fmt.Errorf("%w; %s", err, away)
}

// curedByAgent tells whether the runtime is told to try again because an agent puts right
// what is wrong.
func curedByAgent(err error) bool {
	for _, cured := range []error{nodecache.ErrBoot, nodecache.ErrDamaged, errNoSource, hostport.ErrNotReady} {
		if errors.Is(err, cured) {
			return true
		}
	}
	return errors.As(err, new(*ipam.Exhausted))
}
