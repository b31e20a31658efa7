package operator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/kube/crd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reserved is the condition of a Subnet that names ranges: True if all of them are reserved in the cloud.
const Reserved = "Reserved"

// The reasons of Reserved.
const (
	keptAll      = "Reserved"
	keptOverlaps = "Overlaps"
	keptInvalid  = "Invalid"
	keptNever    = "NotSupported"
	keptRefused  = "Forbidden"
	keptSlowed   = "Throttled"
	keptFailed   = "CloudFailed"
)

// keptCondition returns what the object says after an attempt, the zero condition if there is nothing to say.
func keptCondition(want []netip.Prefix, out reserving, generation int64) condition {
	c := condition{Type: Reserved, Status: metav1.ConditionFalse, ObservedGeneration: generation}
	var bad *badRange
	switch {
	case errors.As(out.err, &bad):
		c.Reason, c.Message = keptInvalid, bad.text+": correct spec.reserve; nothing is changed until then"
	case errors.Is(out.err, errKeepsNone):
		c.Reason, c.Message = keptNever, out.err.Error()+": remove spec.reserve"
	case errors.Is(out.err, cloud.ErrTaken):
		c.Reason, c.Message = keptOverlaps, out.err.Error()
	case errors.Is(out.err, cloud.ErrForbidden):
		c.Reason, c.Message = keptRefused, out.err.Error()+"; the operator's policy in conf/ has the rights"
	case errors.Is(out.err, cloud.ErrThrottled):
		c.Reason, c.Message = keptSlowed, out.err.Error()
	case out.err != nil:
		c.Reason, c.Message = keptFailed, out.err.Error()
	case len(out.plan.Barred) > 0:
		c.Reason, c.Message = keptOverlaps, fmt.Sprintf("%s can't be reserved: %s is already, by others or for prefixes; delete that, or correct spec.reserve", listRanges(out.plan.Barred), out.plan.Blocked)
	case len(want) == 0:
		return condition{}
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, keptAll, fmt.Sprintf("ranges reserved in the cloud: %s", listRanges(want))
	}
	c.Message = Shorten(c.Message)
	return c
}

func listRanges(list []netip.Prefix) string {
	var text []string
	for _, in := range list {
		text = append(text, in.String())
	}
	return strings.Join(text, ", ")
}

// tell writes into the object's status what is known of the ranges. What an earlier leader has written stays until this one has looked.
func (k *kept) tell(to *crd.Subnet, now time.Time) {
	status := &to.Status
	if k.listed {
		status.Reserved = nil
	}
	for _, is := range k.ranges { // none before they are listed
		if len(status.Reserved) < mostTold {
			status.Reserved = append(status.Reserved, crd.CloudReservation{CIDR: is.Range.String(), ID: is.ID})
		}
	}
	before := keptIn(*status)
	if k.listed || k.says.Type != "" {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c condition) bool { return c.Type == Reserved })
	}
	if k.says.Type == "" {
		return
	}
	c := k.says
	if c.LastTransitionTime = before.LastTransitionTime; before.Status != c.Status {
		c.LastTransitionTime = metav1.Time{Time: now.Truncate(time.Second)}
	}
	status.Conditions = append(status.Conditions, c)
}

// mostTold is how many ranges the schema takes in a status.
const mostTold = 64

// saysSameKept tells whether two statuses say the same of reserved ranges, words apart.
func saysSameKept(a, b crd.SubnetStatus) bool {
	x, y := keptIn(a), keptIn(b)
	return x.Status == y.Status && x.Reason == y.Reason && x.ObservedGeneration == y.ObservedGeneration && slices.Equal(a.Reserved, b.Reserved)
}

func keptIn(s crd.SubnetStatus) (c condition) {
	if at := slices.IndexFunc(s.Conditions, func(c condition) bool { return c.Type == Reserved }); at >= 0 {
		c = s.Conditions[at]
	}
	return c
}

// keptNotices returns what people are told when ranges can't be reserved, and when they are again.
func keptNotices(s *crd.Subnet, before crd.SubnetStatus) []Notice {
	was, is := keptIn(before), keptIn(s.Status)
	n := Notice{Kind: "Subnet", Name: s.Name, UID: string(s.UID), Message: is.Message}
	switch {
	case is.Status == was.Status && is.Reason == was.Reason, is.Type == "":
		return nil
	case is.Status == metav1.ConditionFalse:
		n.Warning, n.Reason = true, "NotReserved"
	case was.Status == metav1.ConditionFalse:
		n.Reason = "Reserved"
	default:
		return nil
	}
	return []Notice{n}
}
