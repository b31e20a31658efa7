package aws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// because makes a failure of our own.
func because(kind error, format string, args ...any) error {
	return &driver.Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// failure judges a failed request: what happened, and what EC2 says of it. One that was not
// sent has had no effect; what others say of why, as those who give credentials, says nothing
// of EC2.
func (d *Driver) failure(err error, mutates, sent bool) error {
	out := &driver.Error{Kind: cloud.ErrUnavailable, Detail: reason(err, sent)}
	status, said := readAnswer(err)
	who := stranger(err, sent)
	switch {
	case !sent:
		if !isMomentary(err) {
			out.Kind = cloud.ErrForbidden // no credentials, an argument that can't be sent
		}
		if strings.Contains(err.Error(), noCredentials) {
			out.Why = driver.Unsigned
		}
	case who != nil:
		out.Detail = who.Error()
		if mutates {
			out.Kind = cloud.ErrUnknown
		}
	case said != nil:
		out.Kind, out.Why = kindOf(said, status, mutates), whyOf(said, operationOf(err))
		out.Detail = codeAndMessage(said, status)
		if out.Why == driver.Unauthorized {
			out.Action = "ec2:" + operationOf(err)
			out.Detail += " (" + out.Action + ")" // EC2 may say it in a cipher alone
		}
	case mutates:
		out.Kind = cloud.ErrUnknown
	}
	if who != nil {
		out.Why = driver.Between
	}
	out.Detail = d.secrets.Line(out.Detail)
	return out
}

// isMomentary tells whether what has failed before a request was sent may work a moment
// later: whoever was asked for credentials was not there, had too much to do, or answered
// what nobody understands.
func isMomentary(err error) bool {
	var answered interface{ HTTPStatusCode() int } // of several types: metadata, STS, the agent of EKS
	if errors.As(err, &answered) && answered.HTTPStatusCode() > 0 {
		status := answered.HTTPStatusCode()
		said, ok := errors.AsType[smithy.APIError](err)
		return status < 400 || status >= 500 || status == 429 || ok && throttles[codeOf(said)]
	}
	return ended(err) || isNetwork(err) || noSession(err)
}

// noSession tells whether the metadata did not answer who asked for a session: the SDK hides
// what failed there from errors.As.
func noSession(err error) bool {
	text := err.Error()
	return strings.Contains(text, "failed to get API token") && !strings.Contains(text, "StatusCode: 4")
}

// readAnswer returns the status of the answer and the error that EC2 wrote there, if
// there is one.
func readAnswer(err error) (status int, said smithy.APIError) {
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		return 0, nil
	}
	errors.As(err, &said)
	return response.HTTPStatusCode(), said
}

// stranger returns who has refused in the place of EC2, nil if it was EC2 or nobody knows: it
// gives a reason with each refusal but for the rate. Before a request is sent only a proxy can be
// one: other answers are of who was asked for credentials.
func stranger(err error, sent bool) *wire.Stranger {
	if proxy, is := errors.AsType[*wire.Stranger](err); is {
		return proxy
	}
	var response *smithyhttp.ResponseError
	if !sent || !errors.As(err, &response) || response.Response == nil {
		return nil
	}
	status, said := readAnswer(err)
	switch {
	case status < 400 || status >= 500 || status == http.StatusTooManyRequests:
		return nil
	case said == nil && breaksOff(err):
		return nil
	case said != nil && (said.ErrorCode() != sdkUnknown || said.ErrorMessage() != sdkUnknown):
		return nil
	}
	return wire.StrangerOf(statusLine(status), response.Response.Header)
}

// operationOf returns the name of the call that failed.
func operationOf(err error) string {
	if of, ok := errors.AsType[*smithy.OperationError](err); ok {
		return of.OperationName
	}
	return ""
}

// codeOf returns EC2's code of an error.
func codeOf(said smithy.APIError) string { return strings.TrimPrefix(said.ErrorCode(), "Client.") }

// kindOf is the kind of what EC2 answers. Codes are EC2's own, as its API reference
// lists them; a message is only looked at where one code stands for several things.
func kindOf(said smithy.APIError, status int, mutates bool) error {
	code := codeOf(said)
	switch {
	case throttles[code] || status == 429:
		return cloud.ErrThrottled
	case code == "InsufficientFreeAddressesInSubnet", code == noBlock, tells(code, said.ErrorMessage(), textFull):
		return cloud.ErrSubnetFull
	case strings.HasSuffix(code, "LimitExceeded"):
		return cloud.ErrLimit
	case isMissing(code):
		return cloud.ErrNotFound
	case code == addressInUse, tells(code, said.ErrorMessage(), textAssigned):
		return cloud.ErrUnavailable // until the other one lets go
	case code == notYet, code == inUse, tells(code, said.ErrorMessage(), textInUse):
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

// Codes of which the meaning goes beyond their kind.
const (
	noBlock         = "InsufficientCidrBlocks"
	inUse           = "InvalidNetworkInterface.InUse"
	addressInUse    = "InvalidIPAddress.InUse"
	notYet          = "IncorrectState"
	badValue        = "InvalidParameterValue"
	otherParameters = "IdempotentParameterMismatch"
	notAllowed      = "UnauthorizedOperation"
)

// whyOf is what else a code tells. InvalidParameterValue stands for many things: which of
// them is told by the operation and, of an attachment, by the message alone.
func whyOf(said smithy.APIError, operation string) driver.Why {
	code, message := codeOf(said), said.ErrorMessage()
	attaches := operation == "AttachNetworkInterface"
	switch {
	case strings.EqualFold(code, "InvalidNetworkInterfaceID.NotFound"):
		return driver.NoSuchInterface
	case code == noBlock:
		return driver.NoWholeBlock
	case code == addressInUse, tells(code, message, textAssigned):
		return driver.AddressTaken
	case code == otherParameters:
		return driver.TokenReused
	case code == notAllowed:
		return driver.Unauthorized
	case code == "RequestExpired", code == "SignatureDoesNotMatch" && strings.Contains(message, "expired"):
		return driver.WrongClock
	case attaches && tells(code, message, textIndexTaken):
		return driver.IndexTaken
	case attaches && (code == inUse || tells(code, message, textInUse)):
		return driver.InUse
	case code == notYet, code == inUse, tells(code, message, textInUse), code == badValue && operation == "DeleteNetworkInterface":
		return driver.Busy
	case code == badValue && strings.HasPrefix(operation, "Unassign"):
		return driver.NoSuchAddress
	}
	return driver.Other
}

var throttles = map[string]bool{
	"RequestLimitExceeded": true, "Throttling": true, "ThrottlingException": true, "ThrottledException": true,
	"RequestThrottled": true, "RequestThrottledException": true, "TooManyRequestsException": true,
	"BandwidthLimitExceeded": true, "EC2ThrottledException": true, "SlowDown": true,
}

// What EC2 writes with badValue, a code that stands for many things. A page with the
// words is named at each; golden lines of them are in the tests.
const (
	// github.com/cilium/cilium/pull/31016, github.com/aws/amazon-vpc-cni-k8s/issues/3105
	textFull = "sufficient free ipv4 addresses or prefixes"
	// github.com/hashicorp/terraform-provider-aws/pull/906, github.com/lstoll/k8s-vpcnet/issues/71
	textIndexTaken = "already has an interface attached at device"
	// github.com/aws/amazon-vpc-cni-k8s/issues/1399, github.com/gruntwork-io/cloud-nuke/pull/1132
	textInUse = "is currently in use"
	// no page: what is remembered of an assignment by name without AllowReassignment
	textAssigned = "already been assigned"
)

// tells looks for EC2's words of a code that means something only with them.
func tells(code, message, words string) bool {
	return code == badValue && strings.Contains(strings.ToLower(message), words)
}

// isMissing tells whether a code means that what the call is about does not exist.
// An ID that can't be one is as good as one of nothing.
func isMissing(code string) bool {
	of, why, _ := strings.Cut(strings.ToLower(code), ".")
	switch of {
	case "invalidnetworkinterfaceid", "invalidinstanceid", "invalidsubnetid", "invalidattachmentid":
		return why == "notfound" || why == "malformed"
	}
	return of == "invalidinstancetype"
}

// ended tells whether the context ended.
func ended(err error) bool {
	var canceled *smithy.CanceledError
	return errors.As(err, &canceled) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}
