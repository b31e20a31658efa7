package cloudtest

import (
	"context"

	"github.com/enipool/enipool/pkg/cloud"
)

// kinds is what the comments of the kinds of failure say.
var kinds = []sentence{
	{"after ErrThrottled nothing has happened", []Capability{Faults}, refused(Throttled, cloud.ErrThrottled)},
	{"after ErrUnavailable nothing has happened", []Capability{Faults}, refused(Unavailable, cloud.ErrUnavailable)},
	{"wrong credentials are ErrForbidden", []Capability{Faults}, refused(Forbidden, cloud.ErrForbidden)},
	{"a call whose context has ended has not happened unless the error is ErrUnknown", nil, contextEnded},
}

func refused(f Failure, kind error) func(*node) {
	return func(n *node) {
		calls := n.calls()
		before := n.see()
		for _, call := range calls {
			n.Inject(call.method, f)
			if call.method == "Limits" && f != Throttled {
				n.limitsOrNone(kind)
			} else {
				n.is(call.do(n.ctx), kind)
			}
			n.unchanged(before)
		}
	}
}

// limitsOrNone asks for the limits where the cloud does not tell them: built-in ones are
// those that it tells otherwise.
func (n *node) limitsOrNone(kind error) {
	n.Helper()
	switch l, err := n.Cloud.Limits(n.ctx); {
	case err != nil:
		n.is(err, kind)
	case l != n.limits:
		n.Errorf("Limits that the cloud did not tell are %+v; it tells %+v", l, n.limits)
	}
}

func contextEnded(n *node) {
	calls := n.calls()
	before := n.see()
	ended, cancel := context.WithCancel(n.ctx)
	cancel()
	for _, call := range calls {
		err := call.do(ended)
		n.is(err, cloud.ErrUnavailable, cloud.ErrUnknown)
		if cloud.Kind(err) == cloud.ErrUnavailable {
			n.unchanged(before)
		}
	}
}
