package sim

import (
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// unheardError is the error of a call without an answer.
func unheardError(c Call, why string) error {
	kind := cloud.ErrUnavailable
	if c.Mutates {
		kind = cloud.ErrUnknown
	}
	return &driver.Error{Kind: kind, Detail: why}
}

// verdict is what a Reason means to callers of a driver.
type verdict struct {
	kind error
	why  cloud.Why
}

// verdictOf returns what a Reason means. It is ErrForbidden if repeating the call can't help.
func verdictOf(r Reason) verdict {
	switch r {
	case NoSuchInterface, NoSuchResource: // a driver tags ENIs alone
		return verdict{cloud.ErrNotFound, cloud.NoSuchInterface}
	case NoSuchInstance:
		return verdict{cloud.ErrNotFound, cloud.NoSuchInstance}
	case NoSuchSubnet:
		return verdict{cloud.ErrNotFound, cloud.NoSuchSubnet}
	case NoSuchType, NoSuchAttachment, NoSuchReservation:
		return verdict{cloud.ErrNotFound, cloud.Other}
	case NoSuchAddress:
		return verdict{cloud.ErrForbidden, cloud.NoSuchAddress}
	case AddressInUse:
		return verdict{cloud.ErrUnavailable, cloud.AddressTaken}
	case SubnetFull:
		return verdict{cloud.ErrSubnetFull, cloud.Other}
	case NoBlock:
		return verdict{cloud.ErrSubnetFull, cloud.NoWholeBlock}
	case InterfaceLimit, AttachmentLimit, AddressLimit:
		return verdict{cloud.ErrLimit, cloud.Other}
	case IndexInUse:
		return verdict{cloud.ErrForbidden, cloud.IndexTaken}
	case AlreadyAttached:
		return verdict{cloud.ErrUnavailable, cloud.InUse}
	case InterfaceInUse, IncorrectState:
		return verdict{cloud.ErrUnavailable, cloud.Busy}
	case TokenMismatch:
		return verdict{cloud.ErrUnknown, cloud.TokenReused}
	case Throttled:
		return verdict{cloud.ErrThrottled, cloud.Other}
	case Unavailable:
		return verdict{cloud.ErrUnavailable, cloud.Other}
	}
	return verdict{cloud.ErrForbidden, cloud.Other}
}

// errorOf makes the error of a call that was answered. A fault may have a kind of package cloud in
// the place of a Reason.
func errorOf(err error) error {
	for _, kind := range cloud.Kinds() {
		if err == kind {
			return &driver.Error{Kind: kind, Detail: "a simulated fault"}
		}
	}
	v := verdictOf(ReasonOf(err))
	out := &driver.Error{Kind: v.kind, Why: v.why, Detail: err.Error()}
	if e, ok := err.(*Error); ok {
		out.RetryAfter = e.RetryAfter
	}
	return out
}
