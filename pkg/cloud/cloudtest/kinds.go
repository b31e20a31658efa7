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
			n.is(call.do(n.ctx), kind)
			n.unchanged(before)
		}
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
