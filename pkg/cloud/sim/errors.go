package sim

import (
	"errors"
	"fmt"
	"time"
)

// Reason is why a call failed. A wire format has a code of its own for each.
type Reason string

// The reasons.
const (
	NoSuchInterface  Reason = "no such interface"
	NoSuchInstance   Reason = "no such instance"
	NoSuchSubnet     Reason = "no such subnet"
	NoSuchGroup      Reason = "no such security group"
	NoSuchAttachment Reason = "no such attachment"
	NoSuchType       Reason = "no such instance type"
	NoSuchAddress    Reason = "no such address on the interface"
	NoSuchResource   Reason = "no such resource"

	NoSuchReservation Reason = "no such reservation"

	SubnetFull       Reason = "subnet has too few free addresses"
	NoBlock          Reason = "subnet has too few free blocks"
	InterfaceLimit   Reason = "interface limit of the account"
	AttachmentLimit  Reason = "attachment limit of the instance"
	AddressLimit     Reason = "address limit of the interface"
	IndexInUse       Reason = "device index in use"
	AlreadyAttached  Reason = "interface is attached already"
	InterfaceInUse   Reason = "interface is in use"
	AddressInUse     Reason = "address in use"
	OutsideSubnet    Reason = "address outside of the subnet"
	ReservedAddress  Reason = "address is reserved"
	PrimaryAddress   Reason = "primary address"
	PrimaryInterface Reason = "the instance's own interface"
	WrongZone        Reason = "interface and instance are in different zones"
	NotSupported     Reason = "not supported by the subnet or the instance type"
	IncorrectState   Reason = "incorrect state"
	TagLimit         Reason = "tag limit of the resource"
	TokenMismatch    Reason = "token was used with other parameters"
	Invalid          Reason = "invalid parameter"

	Throttled   Reason = "throttled"
	Forbidden   Reason = "forbidden"
	Unavailable Reason = "unavailable"
)

// Error is a failed call.
type Error struct {
	Reason     Reason
	Object     string // the id, address or name it is about
	Detail     string
	RetryAfter time.Duration

	// What a wire format answers in place of its own for the Reason, for faults.
	Code   string
	Status int // of HTTP
}

// Error returns the reason with what it is about.
func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Object != "" {
		text += " " + e.Object
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is tells whether the target is an Error of the same Reason.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Reason == e.Reason
}

// ReasonOf returns the reason of an error, Unavailable for one that is none of
// this package's, "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Unavailable
}

// fail makes an Error.
func fail(r Reason, object, format string, args ...any) error {
	return &Error{Reason: r, Object: object, Detail: fmt.Sprintf(format, args...)}
}
