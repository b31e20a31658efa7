package bce

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// known is a reason's code and HTTP status.
type known struct {
	code   string
	status int
}

// codes are the API's for each reason. Source: its reference for those of the API as
// a whole, Baidu's driver for those of ENIs.
func codes() map[sim.Reason]known {
	return map[sim.Reason]known{
		sim.NoSuchInterface:  {"EniIdException", http.StatusBadRequest},
		sim.NoSuchInstance:   {"NoSuchObject", http.StatusNotFound},
		sim.NoSuchSubnet:     {"NoSuchObject", http.StatusNotFound},
		sim.NoSuchGroup:      {"NoSuchObject", http.StatusNotFound},
		sim.NoSuchAttachment: {"EniStatusException", http.StatusBadRequest},
		sim.NoSuchType:       {"NoSuchObject", http.StatusNotFound},
		sim.NoSuchAddress:    {"PrivateIPNotExistException", http.StatusBadRequest},
		sim.NoSuchResource:   {"NoSuchObject", http.StatusNotFound},

		sim.NoSuchReservation: {"NoSuchObject", http.StatusNotFound},

		sim.SubnetFull:       {"SubnetHasNoMoreIpException", http.StatusBadRequest},
		sim.InterfaceLimit:   {"QuotaLimitExceeded", http.StatusForbidden},
		sim.AttachmentLimit:  {"ExceedLimitException", http.StatusBadRequest},
		sim.AddressLimit:     {"VmMemoryCanNotAttachMoreIpException", http.StatusBadRequest},
		sim.AlreadyAttached:  {"EniStatusException", http.StatusBadRequest},
		sim.InterfaceInUse:   {"EniStatusException", http.StatusBadRequest},
		sim.IncorrectState:   {"EniStatusException", http.StatusBadRequest},
		sim.AddressInUse:     {"PrivateIpInUseException", http.StatusBadRequest},
		sim.TokenMismatch:    {"IdempotentParameterMismatch", http.StatusForbidden},
		sim.PrimaryAddress:   {"BadRequest", http.StatusBadRequest},
		sim.PrimaryInterface: {"BadRequest", http.StatusBadRequest},
		sim.Invalid:          {"BadRequest", http.StatusBadRequest},

		sim.Throttled:   {"RateLimit", http.StatusTooManyRequests},
		sim.Forbidden:   {"AccessDenied", http.StatusForbidden},
		sim.Unavailable: {"InternalError", http.StatusInternalServerError},
	}
}

// refuse is an error in the API's own words.
func refuse(code string, status int, format string, args ...any) error {
	return &sim.Error{Reason: sim.Invalid, Code: code, Status: status, Detail: fmt.Sprintf(format, args...)}
}

// invalid is a parameter that can't be right.
func invalid(format string, args ...any) error {
	return refuse("BadRequest", http.StatusBadRequest, format, args...)
}

// fault is an error as it is answered.
type fault struct {
	RequestID string `json:"requestId"`
	Code      string `json:"code"`
	Message   string `json:"message"`
}

// writeError makes the answer of a failed call.
func writeError(h http.Header, id string, err error) (status int, body []byte) {
	e, ok := errors.AsType[*sim.Error](err)
	if !ok {
		e = &sim.Error{Reason: sim.Unavailable}
	}
	k, ok := codes()[e.Reason]
	if !ok {
		k = codes()[sim.Invalid]
	}
	message := e.Error()
	if e.Code != "" {
		message = e.Detail
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	text, err := json.Marshal(fault{RequestID: id, Code: cmp.Or(e.Code, k.code), Message: message})
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	return cmp.Or(e.Status, k.status), text
}
