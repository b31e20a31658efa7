package bce

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim/api"
)

// known is a reason's code and HTTP status.
type known struct {
	code   string
	status int
}

// codes are the API's for each reason. Source: its reference for those of the API as
// a whole, Baidu's driver for those of ENIs.
func codes() map[api.Reason]known {
	return map[api.Reason]known{
		api.NoSuchInterface:  {"EniIdException", http.StatusBadRequest},
		api.NoSuchInstance:   {"NoSuchObject", http.StatusNotFound},
		api.NoSuchSubnet:     {"NoSuchObject", http.StatusNotFound},
		api.NoSuchGroup:      {"NoSuchObject", http.StatusNotFound},
		api.NoSuchAttachment: {"EniStatusException", http.StatusBadRequest},
		api.NoSuchType:       {"NoSuchObject", http.StatusNotFound},
		api.NoSuchAddress:    {"PrivateIPNotExistException", http.StatusBadRequest},
		api.NoSuchResource:   {"NoSuchObject", http.StatusNotFound},

		api.SubnetFull:       {"SubnetHasNoMoreIpException", http.StatusBadRequest},
		api.InterfaceLimit:   {"QuotaLimitExceeded", http.StatusForbidden},
		api.AttachmentLimit:  {"ExceedLimitException", http.StatusBadRequest},
		api.AddressLimit:     {"VmMemoryCanNotAttachMoreIpException", http.StatusBadRequest},
		api.AlreadyAttached:  {"EniStatusException", http.StatusBadRequest},
		api.InterfaceInUse:   {"EniStatusException", http.StatusBadRequest},
		api.IncorrectState:   {"EniStatusException", http.StatusBadRequest},
		api.AddressInUse:     {"PrivateIpInUseException", http.StatusBadRequest},
		api.TokenMismatch:    {"IdempotentParameterMismatch", http.StatusForbidden},
		api.PrimaryAddress:   {"BadRequest", http.StatusBadRequest},
		api.PrimaryInterface: {"BadRequest", http.StatusBadRequest},
		api.Invalid:          {"BadRequest", http.StatusBadRequest},

		api.Throttled:   {"RateLimit", http.StatusTooManyRequests},
		api.Forbidden:   {"AccessDenied", http.StatusForbidden},
		api.Unavailable: {"InternalError", http.StatusInternalServerError},
	}
}

// refuse is an error in the API's own words.
func refuse(code string, status int, format string, args ...any) error {
	return &api.Error{Reason: api.Invalid, Code: code, Status: status, Detail: fmt.Sprintf(format, args...)}
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
	e, ok := errors.AsType[*api.Error](err)
	if !ok {
		e = &api.Error{Reason: api.Unavailable}
	}
	k, ok := codes()[e.Reason]
	if !ok {
		k = codes()[api.Invalid]
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
