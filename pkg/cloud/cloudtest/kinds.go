package cloudtest

import (
	"context"

	"github.com/enipool/enipool/pkg/cloud"
)

// kinds is what the comments of the kinds of failure say.
var kinds = []sentence{
	{"after ErrThrottled nothing has happened", []Capability{Faults}, refusedAs(Throttled, cloud.ErrThrottled)},
	{"after ErrUnavailable nothing has happened", []Capability{Faults}, refusedAs(Unavailable, cloud.ErrUnavailable)},
	{"wrong credentials are ErrForbidden", []Capability{Faults}, refusedAs(Forbidden, cloud.ErrForbidden)},
	{"a call whose context has ended has not happened unless the error is ErrUnknown", nil, contextEnded},
}

func refusedAs(f Failure, kind error) func(*node) {
	return func(node *node) {
		calls := node.oneOfEach()
		before := node.settledENIs()
		for _, call := range calls {
			node.Inject(call.method, f)
			if call.method == "Limits" && f != Throttled {
				node.limitsOrNone(kind)
			} else {
				node.checkKind(call.do(node.ctx), kind)
			}
			node.checkUnchanged(before)
		}
	}
}

// limitsOrNone asks for the limits while the cloud does not tell them. Built-in ones must be the
// same as those that it tells.
func (n *node) limitsOrNone(kind error) {
	n.Helper()
	switch l, err := n.Cloud.Limits(n.ctx); {
	case err != nil:
		n.checkKind(err, kind)
	case l != n.limits:
		n.Errorf("Limits that the cloud did not tell are %+v; it tells %+v", l, n.limits)
	}
}

func contextEnded(node *node) {
	calls := node.oneOfEach()
	before := node.settledENIs()
	ended, cancel := context.WithCancel(node.ctx)
	cancel()
	for _, call := range calls {
		err := call.do(ended)
		node.checkKind(err, cloud.ErrUnavailable, cloud.ErrUnknown)
		if cloud.Kind(err) == cloud.ErrUnavailable {
			node.checkUnchanged(before)
		}
	}
}
