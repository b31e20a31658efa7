package operator

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/order"
)

// awaited returns what a node whose calls go from one side to the other waits for, as a reason and for people; of one that
// makes its own calls, that. The reason changes with what is awaited, since words alone are not written.
func (in input) awaited(v order.View) (reason, words string) {
	mode := v.Status.Mode.String()
	switch v.Status.Mode {
	case order.Joining:
		reason, words = in.joinAwaits()
	case order.Leaving:
		reason, words = in.leaveAwaits(v.Status)
	default:
		return mode, "the node's agent calls the cloud"
	}
	return mode + reason, words
}

// joinAwaits returns what is left of hasJoined, in its order.
func (in input) joinAwaits() (reason, words string) {
	switch {
	case in.shown == nil || in.shown.began.Mono < in.joined+in.term.Lease.Settle:
		return "Describe", "a describe that began after the agent's last calls"
	case in.shown.view.Err != nil:
		return "Describe", "a describe that shows the instance"
	case in.limits == (eni.Limits{}):
		return "Limits", "what the instance can carry"
	}
	if list := in.shown.unfinished(handoverOf(in.network)); len(list) > 0 {
		return "Interface", fmt.Sprintf("ENI %s, which the agent has begun, and %d more to be attached", list[0].ID, len(list)-1)
	}
	return "", "the calls that are under way"
}

// leaveAwaits returns what is left to do before the agent may call.
func (in input) leaveAwaits(s order.Status) (reason, words string) {
	switch {
	case len(s.Releasing)+len(s.LeavingInterfaces) > 0:
		return "Release", fmt.Sprintf("%d addresses and %d ENIs that are accepted to be released", len(s.Releasing), len(s.LeavingInterfaces))
	case len(s.Quarantined) > 0:
		return "Quarantine", fmt.Sprintf("the quarantine of %d addresses", len(s.Quarantined))
	}
	return "", "the calls that are under way"
}
