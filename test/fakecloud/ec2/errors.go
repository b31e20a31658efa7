package ec2

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// refuse is an error in EC2's own words.
func refuse(code, format string, args ...any) error {
	return &sim.Error{Reason: sim.Invalid, Code: code, Status: statusOf(code), Detail: fmt.Sprintf(format, args...)}
}

// statusOf returns the HTTP status of a code.
func statusOf(code string) int {
	switch code {
	case "AuthFailure":
		return http.StatusUnauthorized
	case "UnauthorizedOperation", "MissingAuthenticationToken":
		return http.StatusForbidden
	case "DryRunOperation":
		return http.StatusPreconditionFailed
	case "RequestLimitExceeded", "Unavailable", "ServiceUnavailable":
		return http.StatusServiceUnavailable
	case "InternalError", "InternalFailure":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// known is a reason's code and text, OBJECT in which is the object and DETAIL the
// detail.
type known struct{ code, text string }

// codes are EC2's for each reason. Where EC2 has only InvalidParameterValue, the
// text is what tells.
func codes() map[sim.Reason]known {
	return map[sim.Reason]known{
		sim.NoSuchInterface:   {"InvalidNetworkInterfaceID.NotFound", "The networkInterface ID 'OBJECT' does not exist"},
		sim.NoSuchInstance:    {"InvalidInstanceID.NotFound", "The instance ID 'OBJECT' does not exist"},
		sim.NoSuchSubnet:      {"InvalidSubnetID.NotFound", "The subnet ID 'OBJECT' does not exist"},
		sim.NoSuchGroup:       {"InvalidGroup.NotFound", "The security group 'OBJECT' does not exist"},
		sim.NoSuchAttachment:  {"InvalidAttachmentID.NotFound", "The attachment 'OBJECT' does not exist"},
		sim.NoSuchType:        {"InvalidInstanceType", "The following supplied instance types do not exist: [OBJECT]"},
		sim.NoSuchAddress:     {"InvalidParameterValue", "Some of the specified addresses are not assigned to interface: OBJECT DETAIL"},
		sim.NoSuchReservation: {"InvalidSubnetCidrReservationID.NotFound", "The subnet CIDR reservation ID 'OBJECT' does not exist"},
		sim.NoSuchResource:    {"InvalidID", "The ID 'OBJECT' is not valid"},

		sim.SubnetFull:       {"InsufficientFreeAddressesInSubnet", "The specified subnet does not have enough free addresses to satisfy the request."},
		sim.NoBlock:          {"InsufficientCidrBlocks", "The specified subnet does not have enough free cidr blocks to satisfy the request."},
		sim.InterfaceLimit:   {"NetworkInterfaceLimitExceeded", "The maximum number of network interfaces has been reached."},
		sim.AttachmentLimit:  {"AttachmentLimitExceeded", "Interface count exceeds the limit for instance 'OBJECT': DETAIL"},
		sim.AddressLimit:     {"PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit for 'OBJECT': DETAIL"},
		sim.IndexInUse:       {"InvalidParameterValue", "Instance 'OBJECT' already has an interface attached at device DETAIL."},
		sim.AlreadyAttached:  {"InvalidNetworkInterface.InUse", "Interface: [OBJECT] in use."},
		sim.InterfaceInUse:   {"InvalidParameterValue", "Network interface 'OBJECT' is currently in use."},
		sim.AddressInUse:     {"InvalidIPAddress.InUse", "Address OBJECT is in use."},
		sim.OutsideSubnet:    {"InvalidParameterValue", "Address OBJECT does not fall within the subnet's address range"},
		sim.ReservedAddress:  {"InvalidParameterValue", "Address OBJECT is in subnet's reserved address range"},
		sim.PrimaryAddress:   {"InvalidParameterValue", "The primary private IP address OBJECT can't be unassigned"},
		sim.PrimaryInterface: {"OperationNotPermitted", "The network interface OBJECT at device index 0 and networkCard index 0 cannot be detached."},
		sim.WrongZone:        {"InvalidParameterCombination", "You may not attach a network interface to an instance if they are not in the same availability zone"},
		sim.NotSupported:     {"UnsupportedOperation", "OBJECT: DETAIL"},
		sim.IncorrectState:   {"IncorrectState", "OBJECT: DETAIL"},
		sim.TokenMismatch:    {"IdempotentParameterMismatch", "The client token 'OBJECT' was used with other parameters"},
		sim.TagLimit:         {"TagLimitExceeded", "The maximum number of Tags for resource OBJECT has been reached: DETAIL"},
		sim.Invalid:          {"InvalidParameterValue", "OBJECT: DETAIL"},

		sim.Throttled:   {"RequestLimitExceeded", "Request limit exceeded."},
		sim.Forbidden:   {"UnauthorizedOperation", "You are not authorized to perform this operation. DETAIL"},
		sim.Unavailable: {"InternalError", "An internal error has occurred"},
	}
}

// fault is an error as it is answered.
type fault struct {
	XMLName xml.Name `xml:"Response"`
	Code    string   `xml:"Errors>Error>Code"`
	Message string   `xml:"Errors>Error>Message"`
	ID      string   `xml:"RequestID"`
}

// writeError makes the answer of a failed call.
func writeError(id string, err error) (status int, body []byte) {
	e, ok := errors.AsType[*sim.Error](err)
	if !ok {
		e = &sim.Error{Reason: sim.Unavailable}
	}
	k := codes()[e.Reason]
	code, message := k.code, k.words(e)
	if e.Code != "" {
		code, message = e.Code, e.Detail
	}
	status = cmp.Or(e.Status, statusOf(code))
	text, err := xml.Marshal(fault{Code: code, Message: message, ID: id})
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	return status, append([]byte(xml.Header), text...)
}

// words fills the reason's text in.
func (k known) words(e *sim.Error) string {
	return strings.NewReplacer("OBJECT", e.Object, "DETAIL", e.Detail).Replace(k.text)
}
