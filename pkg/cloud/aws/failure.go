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

// errorf makes an error of this package's own, with no refusal of EC2 behind it.
func errorf(kind error, format string, args ...any) error {
	return &driver.Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// judgeFailure makes a *driver.Error of what the SDK returned for a failed request. A request
// that was not sent had no effect. What others answered meanwhile, such as the source of
// credentials, says nothing about EC2.
func (d *Driver) judgeFailure(err error, mutates, sent bool) error {
	out := &driver.Error{Kind: cloud.ErrUnavailable, Detail: unansweredText(err, sent)}
	status, said := readAnswer(err)
	who := findStranger(err, sent)
	switch {
	case !sent:
		if !isMomentary(err) {
			out.Kind = cloud.ErrForbidden // no credentials, an argument that can't be sent
		}
		if strings.Contains(err.Error(), noCredentials) {
			out.Why = cloud.Unsigned
		}
	case who != nil:
		out.Detail = who.Error()
		if mutates {
			out.Kind = cloud.ErrUnknown
		}
	case said != nil:
		out.Kind, out.Why = kindOf(said, status, mutates), whyOf(said, operationOf(err))
		out.Detail = codeAndMessage(said, status)
		if out.Why == cloud.Unauthorized {
			out.Action = "ec2:" + operationOf(err)
			out.Detail += " (" + out.Action + ")" // EC2 may say it in a cipher alone
		}
	case mutates:
		out.Kind = cloud.ErrUnknown
	}
	if who != nil {
		out.Why = cloud.Between
	}
	out.Detail = d.secrets.Line(out.Detail)
	return out
}

// isMomentary tells whether a request that could not be sent may be sent a moment later: the
// source of credentials did not answer, had too much to do, or its answer can't be read.
func isMomentary(err error) bool {
	var answered interface{ HTTPStatusCode() int } // of several types: metadata, STS, the agent of EKS
	if errors.As(err, &answered) && answered.HTTPStatusCode() > 0 {
		status := answered.HTTPStatusCode()
		said, ok := errors.AsType[smithy.APIError](err)
		return status < 400 || status >= 500 || status == 429 || ok && throttles[codeOf(said)]
	}
	return contextEnded(err) || isNetwork(err) || noSession(err)
}

// noSession tells whether the metadata did not answer a request for a session token. It goes
// by the text, because the SDK hides from errors.As what failed there.
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

// findStranger returns who refused the request in the place of EC2, nil if it was EC2 or nobody
// knows. EC2 gives a code with each refusal, except perhaps with one for the rate. If the request
// was not sent, only a proxy counts: other answers come from the source of credentials.
func findStranger(err error, sent bool) *wire.Stranger {
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
	case code == "InsufficientFreeAddressesInSubnet", code == noBlock, badValueSays(code, said.ErrorMessage(), textFull):
		return cloud.ErrSubnetFull
	case strings.HasSuffix(code, "LimitExceeded"):
		return cloud.ErrLimit
	case isMissing(code):
		return cloud.ErrNotFound
	case code == addressInUse, badValueSays(code, said.ErrorMessage(), textAssigned):
		return cloud.ErrUnavailable // until the other ENI loses it
	case code == notYet, code == inUse, badValueSays(code, said.ErrorMessage(), textInUse):
		return cloud.ErrUnavailable // the ENI is busy with an earlier call
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

// whyOf returns what a code tells beyond its kind. InvalidParameterValue stands for many things:
// the operation tells which it is, and of an attachment only the message does.
func whyOf(said smithy.APIError, operation string) cloud.Why {
	code, message := codeOf(said), said.ErrorMessage()
	attaches := operation == "AttachNetworkInterface"
	// The order counts: a case with a message comes before those that take the same code without one.
	switch {
	case strings.EqualFold(code, "InvalidNetworkInterfaceID.NotFound"):
		return cloud.NoSuchInterface
	case isMissing(code) && ofObject(code, "subnetid"):
		return cloud.NoSuchSubnet
	case isMissing(code) && ofObject(code, "instanceid"):
		return cloud.NoSuchInstance
	case code == noBlock:
		return cloud.NoWholeBlock
	case code == addressInUse, badValueSays(code, message, textAssigned):
		return cloud.AddressTaken
	case code == otherParameters:
		return cloud.TokenReused
	case code == notAllowed:
		return cloud.Unauthorized
	case code == "RequestExpired", code == "SignatureDoesNotMatch" && strings.Contains(message, "expired"):
		return cloud.WrongClock
	case attaches && badValueSays(code, message, textIndexTaken):
		return cloud.IndexTaken
	case attaches && (code == inUse || badValueSays(code, message, textInUse)):
		return cloud.InUse
	case code == notYet, code == inUse, badValueSays(code, message, textInUse), code == badValue && operation == "DeleteNetworkInterface":
		return cloud.Busy
	case code == badValue && strings.HasPrefix(operation, "Unassign"):
		return cloud.NoSuchAddress
	}
	return cloud.Other
}

var throttles = map[string]bool{
	"RequestLimitExceeded": true, "Throttling": true, "ThrottlingException": true, "ThrottledException": true,
	"RequestThrottled": true, "RequestThrottledException": true, "TooManyRequestsException": true,
	"BandwidthLimitExceeded": true, "EC2ThrottledException": true, "SlowDown": true,
}

// What EC2 writes with badValue, a code that stands for many things. Each has the page
// that shows these words; the tests have the lines from there.
const (
	// github.com/cilium/cilium/pull/31016, github.com/aws/amazon-vpc-cni-k8s/issues/3105
	textFull = "sufficient free ipv4 addresses or prefixes"
	// github.com/hashicorp/terraform-provider-aws/pull/906, github.com/lstoll/k8s-vpcnet/issues/71
	textIndexTaken = "already has an interface attached at device"
	// github.com/aws/amazon-vpc-cni-k8s/issues/1399, github.com/gruntwork-io/cloud-nuke/pull/1132
	textInUse = "is currently in use"
	// no page: an assignment by name without AllowReassignment is refused with it, as people remember
	textAssigned = "already been assigned"
)

// badValueSays tells whether a refusal has the code badValue and these words.
func badValueSays(code, message, words string) bool {
	return code == badValue && strings.Contains(strings.ToLower(message), words)
}

// isMissing tells whether a code means that the object of the call does not exist. A
// malformed ID counts as one of an object that does not exist.
func isMissing(code string) bool {
	of, why, _ := strings.Cut(strings.ToLower(code), ".")
	switch of {
	case "invalidnetworkinterfaceid", "invalidinstanceid", "invalidsubnetid", "invalidattachmentid":
		return why == "notfound" || why == "malformed"
	}
	return of == "invalidinstancetype"
}

// ofObject tells whether a code names that object: "InvalidSubnetID.NotFound" does "subnetid".
func ofObject(code, object string) bool {
	of, _, _ := strings.Cut(strings.ToLower(code), ".")
	return of == "invalid"+object
}

// contextEnded tells whether the context ended.
func contextEnded(err error) bool {
	var canceled *smithy.CanceledError
	return errors.As(err, &canceled) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}
