package bce

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// meaning is what a code of the API means to callers.
type meaning struct {
	kind error
	why  cloud.Why
}

// meanings are those of the API's codes. They come with and without "Exception", and
// some services write them with another case. Sources are in DESIGN.md.
var meanings = map[string]meaning{
	"ratelimit":            {kind: cloud.ErrThrottled},
	"ratelimitexceeded":    {kind: cloud.ErrThrottled},
	"requestlimitexceeded": {kind: cloud.ErrThrottled},
	"toomanyrequests":      {kind: cloud.ErrThrottled},

	"subnethasnomoreip": {kind: cloud.ErrSubnetFull},

	"vmmemorycannotattachmoreip": {kind: cloud.ErrLimit},
	"exceedlimit":                {kind: cloud.ErrLimit},
	"limitexceeded":              {kind: cloud.ErrLimit},
	"quotaexceeded":              {kind: cloud.ErrLimit},
	"quotalimitexceeded":         {kind: cloud.ErrLimit},

	"eniid":        {cloud.ErrNotFound, cloud.NoSuchInterface},
	missingAddress: {cloud.ErrNotFound, cloud.NoSuchAddress},
	"nosuchobject": {cloud.ErrNotFound, cloud.NoSuchInterface},
	"nosuchkey":    {kind: cloud.ErrNotFound},

	"privateipinuse": {cloud.ErrUnavailable, cloud.AddressTaken}, // another one got it first
	// "The eni status is not allowed to operate": a comment in Baidu's driver,
	// cce-network-v2/pkg/bce/vpceni/node_bcc.go of releases before 2.12.
	"enistatus": {cloud.ErrUnavailable, cloud.Busy},

	"accessdenied":          {cloud.ErrForbidden, cloud.Unauthorized},
	"invalidaccesskeyid":    {kind: cloud.ErrForbidden},
	"invalidhttpauthheader": {kind: cloud.ErrForbidden},
	"optinrequired":         {kind: cloud.ErrForbidden},
	"qualifynotpass":        {kind: cloud.ErrForbidden},
	"requestexpired":        {cloud.ErrForbidden, cloud.WrongClock},
	"signaturedoesnotmatch": {kind: cloud.ErrForbidden},
	"inappropriatejson":     {kind: cloud.ErrForbidden},
	"invalidhttprequest":    {kind: cloud.ErrForbidden},
	"invaliduri":            {kind: cloud.ErrForbidden},
	"malformedjson":         {kind: cloud.ErrForbidden},

	"idempotentparametermismatch": {cloud.ErrForbidden, cloud.TokenReused},
}

// missingAddress is the code for an ENI that lacks an address.
const missingAddress = "privateipnotexist"

// noSuchIPs are the words of bare metal for an address that its ENI lacks, which come
// with the code of an instance that does not exist. Source: Baidu's driver,
// cce-network-v2/pkg/bce/api/cloud/error_test.go.
var noSuchIPs = regexp.MustCompile(`(?i)\bips? \[[^\]]*\] (is|are) invalid`)

// refusal is what the API says of a request that it refuses.
type refusal struct{ Code, Message, RequestID string }

// meaningOf returns what the refusal means. A code that is in no source counts as one for the
// object's state, unless the status says more.
func meaningOf(req request, status int, said refusal) (means meaning) {
	code := strings.TrimSuffix(strings.ToLower(said.Code), "exception")
	means, known := meanings[code]
	switch {
	case noSuchIPs.MatchString(said.Message):
		means, known = meanings[missingAddress], true
	case code == "badrequest" && req.bare && (strings.HasSuffix(req.path, "/batchAddIp") || strings.HasSuffix(req.path, ownCrossPath)):
		// bare metal says so where virtual machines have a code for their limit: Baidu's
		// driver, cce-network-v2/pkg/bce/api/cloud/error.go
		means, known = meaning{kind: cloud.ErrLimit}, true
	case means.why == cloud.NoSuchInterface:
		means.why = missingAt(req.path)
	}
	switch {
	case status == http.StatusTooManyRequests:
		return meaning{kind: cloud.ErrThrottled}
	case status >= 500 && means.kind != cloud.ErrThrottled:
		return meaning{kind: lostKind(req)}
	case known:
		return means
	case status == http.StatusNotFound && strings.HasPrefix(req.path, eniPath+"/"):
		return meaning{cloud.ErrNotFound, cloud.NoSuchInterface}
	case status == http.StatusNotFound:
		return meaning{kind: cloud.ErrNotFound}
	case status == http.StatusConflict:
		return meaning{cloud.ErrUnavailable, cloud.Busy}
	case status == http.StatusBadRequest:
		return meaning{cloud.ErrForbidden, cloud.Busy}
	}
	return meaning{kind: cloud.ErrForbidden}
}

// missingAt returns what there is not where the code does not tell: NoSuchObject stands for everything
// that has an ID. Who makes an ENI names a subnet and security groups, and does not hear which of them it is.
// The requests of bare metal about addresses name the instance, which is their ENI too.
func missingAt(path string) cloud.Why {
	switch {
	case path == eniPath:
		return cloud.Other
	case strings.HasPrefix(path, subnetPath):
		return cloud.NoSuchSubnet
	case strings.HasPrefix(path, instancePath), strings.HasPrefix(path, portPath):
		return cloud.NoSuchInstance
	}
	return cloud.NoSuchInterface
}

// readAnswer reads the answer into the request's value, or makes a *driver.Error of it. The
// kind of an error comes from the API's code, else from the HTTP status, else from whether
// the request can have arrived.
func (d *Driver) readAnswer(req request, answer wire.Answer) error {
	broken := answer.Err != nil && answer.Status != http.StatusTooManyRequests
	switch {
	case broken:
		return d.unansweredError(req, answer)
	case answer.Status >= 400:
		return d.refusalError(req, answer)
	case req.into == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Body, req.into); err != nil {
		return d.badAnswer(req, answer.HTTPStatus()+": "+err.Error())
	}
	return nil
}

// refusalError makes an error of an answer with a status from 400 on. If the API itself has not
// written it, something between the machine and the cloud may have.
func (d *Driver) refusalError(req request, answer wire.Answer) error {
	var said refusal
	text := answer.HTTPStatus()
	if err := json.Unmarshal(answer.Body, &said); err != nil {
		// The API gives a code with each refusal that is final.
		if answer.Status < 500 && answer.Status != http.StatusTooManyRequests {
			return &driver.Error{Kind: lostKind(req), Why: cloud.Between, Detail: d.keys.Line(wire.StrangerOf(text, answer.Header).Error())}
		}
		if said = (refusal{}); len(answer.Body) > 0 {
			text += ", and its body is no error of the API"
		}
	}
	switch {
	case said.Code != "" && said.Message != "":
		text = said.Code + ": " + said.Message
	case said.Code != "":
		text = said.Code + ": " + text
	case said.Message != "":
		text += ": " + said.Message
	}
	text = d.keys.Line(text)
	if hint := hints[strings.ToLower(said.Code)]; hint != "" {
		text += " (" + hint + ")"
	}
	if said.RequestID != "" {
		text += " (request " + d.keys.Hide(said.RequestID) + ")"
	}
	m := meaningOf(req, answer.Status, said)
	if strings.HasSuffix(req.path, "CrossSubnet") && (m.kind == cloud.ErrForbidden || m.kind == cloud.ErrLimit) {
		text += whiteList
	}
	out := &driver.Error{Kind: m.kind, Why: m.why, Detail: text, RetryAfter: answer.After}
	if m.why == cloud.Unauthorized {
		out.Action = req.method + " " + req.path // Baidu's policies allow whole services, so there is no name for one action
		out.Detail = out.Action + ": " + text
	}
	return out
}

// whiteList is what people can do where addresses of other subnets are refused. The code by which an account is
// refused that is not on the white list is in no list: any refusal for a right or a limit may be that.
const whiteList = " (Baidu puts addresses of other subnets on ENIs for accounts on a white list, by a work order; without it set cloud.crossSubnet of operator.yaml to false)"

// hints say what a person can do, by the API's code.
var hints = map[string]string{
	"requestexpired":        "set this machine's clock",
	"signaturedoesnotmatch": "check the access key",
	"invalidaccesskeyid":    "check the access key",
	"accessdenied":          "grant what conf/baidu/policy.json lists",
}

// unansweredError makes an error of a request that failed, or whose answer broke off.
func (d *Driver) unansweredError(req request, answer wire.Answer) error {
	kind, text := cloud.ErrUnavailable, "not sent: "
	if answer.Sent {
		kind, text = lostKind(req), "no answer: "
	}
	switch {
	case answer.Status == 0:
	case errors.Is(answer.Err, wire.ErrLong), errors.Is(answer.Err, wire.ErrElsewhere):
		text = answer.HTTPStatus() + ": "
	default:
		text = answer.HTTPStatus() + ", and the answer breaks off: "
	}
	out := &driver.Error{Kind: kind, Detail: d.keys.Line(text + answer.Err.Error()), RetryAfter: answer.After}
	if _, proxy := errors.AsType[*wire.Stranger](answer.Err); proxy {
		out.Why = cloud.Between
	}
	return out
}

// lostKind is the kind of error of a request that may have arrived and has no usable answer.
func lostKind(r request) error {
	if r.mutates() {
		return cloud.ErrUnknown
	}
	return cloud.ErrUnavailable
}

// ownError makes an error of this package's own, before a request was sent. If the context has
// ended, that is why, whatever failed.
func (d *Driver) ownError(ctx context.Context, kind error, text string) *driver.Error {
	if ended := context.Cause(ctx); ended != nil {
		kind, text = cloud.ErrUnavailable, ended.Error()
	}
	return &driver.Error{Kind: kind, Detail: d.keys.Line(text)}
}

// badAnswer makes an error of an answer that is well formed and can't be true.
func (d *Driver) badAnswer(r request, text string) error {
	return &driver.Error{Kind: lostKind(r), Detail: d.keys.Line("bad answer: " + text)}
}
