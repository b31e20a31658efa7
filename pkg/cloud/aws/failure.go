package aws

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
)

// failure judges a failed request: what happened, and what EC2 says of it.
func (c *Client) failure(err error, mutates bool) error {
	var done *callError
	if errors.As(err, &done) {
		told := *done
		told.failed.Detail = shorten(c.secrets.redact(done.failed.Detail))
		return &told
	}
	out := &callError{failed: cloud.Error{Kind: cloud.ErrUnavailable, Detail: reason(err)}}
	answered, said := answer(err)
	switch {
	case said != nil:
		out.code = said.ErrorCode()
		out.failed.Kind = kindOf(said, answered, mutates)
		out.failed.Detail = strings.TrimSuffix(out.code+": "+said.ErrorMessage(), ": ")
	case ended(err):
		out.failed.Detail = "given up before the answer came"
		if mutates {
			out.failed.Kind = cloud.ErrUnknown
		}
	case reached(err):
		if mutates {
			out.failed.Kind = cloud.ErrUnknown
		}
	case !isNetwork(err):
		out.failed.Kind = cloud.ErrForbidden // no credentials, an argument that can't be sent
	}
	out.failed.Detail = shorten(c.secrets.redact(out.failed.Detail))
	return out
}

// answer returns the status of the answer and the error that EC2 wrote there, if
// there is one.
func answer(err error) (status int, said smithy.APIError) {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		return 0, nil
	}
	errors.As(err, &said)
	return response.HTTPStatusCode(), said
}

// kindOf is the kind of what EC2 answers. Codes are EC2's own, as its API reference
// lists them; a message is only looked at where one code stands for several things.
func kindOf(said smithy.APIError, status int, mutates bool) error {
	code := strings.TrimPrefix(said.ErrorCode(), "Client.")
	switch {
	case throttles[code] || status == 429:
		return cloud.ErrThrottled
	case code == "InsufficientFreeAddressesInSubnet", code == noBlock, lacksRoom(code, said.ErrorMessage()):
		return cloud.ErrSubnetFull
	case strings.HasSuffix(code, "LimitExceeded"):
		return cloud.ErrLimit
	case isMissing(code):
		return cloud.ErrNotFound
	case code == notYet, code == inUse:
		return cloud.ErrUnavailable // busy with what was asked before
	case code == otherParameters:
		return cloud.ErrUnknown // the token made something already
	case status < 500:
		return cloud.ErrForbidden
	case mutates:
		return cloud.ErrUnknown
	}
	return cloud.ErrUnavailable
}

// Codes on which the calls themselves depend.
const (
	noBlock         = "InsufficientCidrBlocks"
	inUse           = "InvalidNetworkInterface.InUse"
	notYet          = "IncorrectState"
	badValue        = "InvalidParameterValue"
	otherParameters = "IdempotentParameterMismatch"
)

var throttles = map[string]bool{
	"RequestLimitExceeded": true, "Throttling": true, "ThrottlingException": true, "ThrottledException": true,
	"RequestThrottled": true, "RequestThrottledException": true, "TooManyRequestsException": true,
	"BandwidthLimitExceeded": true, "EC2ThrottledException": true, "SlowDown": true,
}

// lacksRoom: EC2 has told an empty subnet in this way too.
func lacksRoom(code, message string) bool {
	return code == badValue && strings.Contains(strings.ToLower(message), "sufficient free ipv4 addresses or prefixes")
}

// isMissing tells whether a code means that what the call is about does not exist.
// An ID that can't be one is as good as one of nothing.
func isMissing(code string) bool {
	of, why, _ := strings.Cut(strings.ToLower(code), ".")
	switch of {
	case "invalidnetworkinterfaceid", "invalidinstanceid", "invalidsubnetid", "invalidattachmentid":
		return why == "notfound" || why == "malformed"
	}
	return false
}

// isNoENI tells whether EC2 does not find an ENI.
func isNoENI(err error) bool {
	return strings.EqualFold(codeOf(err), "InvalidNetworkInterfaceID.NotFound")
}

// isIndexTaken tells whether an instance has another ENI at the device index.
func isIndexTaken(err error) bool {
	return codeOf(err) == badValue && strings.Contains(err.Error(), "at device")
}

// isAttached tells whether an ENI was to be attached that is already.
func isAttached(err error) bool {
	return codeOf(err) == inUse || codeOf(err) == badValue && strings.Contains(err.Error(), "in use")
}

// ended tells whether the context ended.
func ended(err error) bool {
	var canceled *smithy.CanceledError
	return errors.As(err, &canceled) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// reached tells whether the request may have arrived.
func reached(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") {
		return false
	}
	var sent *smithyhttp.RequestSendError
	var response *smithyhttp.ResponseError
	var garbled *smithy.DeserializationError
	return errors.As(err, &sent) || errors.As(err, &response) || errors.As(err, &garbled)
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}

// reason leaves out what the SDK puts before it: the operation, the number of
// attempts, the request's ID.
func reason(err error) string {
	text := err.Error()
	for _, mark := range []string{"https response error StatusCode: ", "request send failed, ", "operation error EC2: "} {
		if _, after, found := strings.Cut(text, mark); found {
			return after
		}
	}
	return text
}

// mostDetail is how much of a cloud's words is worth a line.
const mostDetail = 400

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "..."
	}
	return text
}
