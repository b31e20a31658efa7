package region

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/config/agentconf"
)

// refused tells in the log what the cloud forbids: once an action and reason, for whichever of the nodes, and once that it works again. Where it
// forbids an action for some nodes alone that is told once an hour.
type refused struct {
	log  *slog.Logger
	now  func() time.Time
	what string // a person does about what the credentials don't allow

	mu sync.Mutex
	of map[refusal]*refusals
}

// refusal is what is forbidden, and for which of the reasons that people do something else about.
type refusal struct {
	action string
	why    cloud.Why
}

// refusals are those of one kind.
type refusals struct {
	is    bool      // the last request was refused
	told  bool      // and people know
	at    time.Time // when they were told last
	since int       // requests that were refused since then
}

// tellRefused is how often what is forbidden to some nodes is told.
const tellRefused = time.Hour

func newRefused(provider string, log *slog.Logger, now func() time.Time) *refused {
	r := &refused{log: log, now: now, of: map[refusal]*refusals{}, what: "`enipoolctl migrate check` says what the operator may do in the cloud"}
	if provider != agentconf.Sim {
		r.what = "allow it as in conf/" + provider + "/policy-operator.json; " + r.what
	}
	return r
}

// reasons are those that people can do something about. Others the engine copes with, such as an index that is taken.
var reasons = []cloud.Why{cloud.Other, cloud.Unauthorized, cloud.Unsigned, cloud.WrongClock}

// ended takes in how a request has ended. It is for engine.Options.Ended.
func (r *refused) ended(action string, err error) {
	why := driver.Reason(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.worked(action)
	case errors.Is(err, cloud.ErrForbidden) && slices.Contains(reasons, why):
		r.forbidden(refusal{action, why}, err)
	}
}

func (r *refused) forbidden(key refusal, err error) {
	one := r.of[key]
	if one == nil {
		one = &refusals{}
		r.of[key] = one
	}
	one.since++
	if now := r.now(); !one.is && (one.at.IsZero() || now.Sub(one.at) >= tellRefused) {
		r.log.Warn("the cloud forbids a request; "+r.what, "action", key.action, "refused", one.since, "error", err)
		one.told, one.at, one.since = true, now, 0
	}
	one.is = true
}

// worked takes in that a request was answered: it is forbidden for no reason any more.
func (r *refused) worked(action string) {
	for _, why := range reasons {
		one := r.of[refusal{action, why}]
		if one == nil || !one.is {
			continue
		}
		if one.told {
			r.log.Info("the cloud no longer forbids it", "action", action, "refused", one.since)
		}
		one.is, one.told = false, false
	}
}
