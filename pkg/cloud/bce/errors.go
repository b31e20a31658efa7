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
	why  driver.Why
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

	"eniid":        {cloud.ErrNotFound, driver.NoSuchInterface},
	missingAddress: {cloud.ErrNotFound, driver.NoSuchAddress},
	"nosuchobject": {cloud.ErrNotFound, driver.NoSuchInterface},
	"nosuchkey":    {kind: cloud.ErrNotFound},

	"privateipinuse": {cloud.ErrUnavailable, driver.AddressTaken}, // another one got it first
	// "The eni status is not allowed to operate": a comment in Baidu's driver,
	// cce-network-v2/pkg/bce/vpceni/node_bcc.go of releases before 2.12.
	"enistatus": {cloud.ErrUnavailable, driver.Busy},

	"accessdenied":          {cloud.ErrForbidden, driver.Unauthorized},
	"invalidaccesskeyid":    {kind: cloud.ErrForbidden},
	"invalidhttpauthheader": {kind: cloud.ErrForbidden},
	"optinrequired":         {kind: cloud.ErrForbidden},
	"qualifynotpass":        {kind: cloud.ErrForbidden},
	"requestexpired":        {cloud.ErrForbidden, driver.WrongClock},
	"signaturedoesnotmatch": {kind: cloud.ErrForbidden},
	"inappropriatejson":     {kind: cloud.ErrForbidden},
	"invalidhttprequest":    {kind: cloud.ErrForbidden},
	"invaliduri":            {kind: cloud.ErrForbidden},
	"malformedjson":         {kind: cloud.ErrForbidden},

	"idempotentparametermismatch": {cloud.ErrForbidden, driver.TokenReused},
}

// missingAddress is the code for an ENI that lacks an address.
const missingAddress = "privateipnotexist"

// noSuchIPs are the words of bare metal for an address that its ENI lacks, which come
// with the code of an instance that does not exist. Source: Baidu's driver,
// cce-network-v2/pkg/bce/api/cloud/error_test.go.
var noSuchIPs = regexp.MustCompile(`(?i)\bips? \[[^\]]*\] (is|are) invalid`)

// refusal is what the API says of a request that it refuses.
type refusal struct{ Code, Message, RequestID string }

// meaningOf returns what the refusal means. Codes that nobody has told us of are for the
// object's state as far as we know, unless the status says more.
func meaningOf(r request, status int, said refusal) (m meaning) {
	code := strings.TrimSuffix(strings.ToLower(said.Code), "exception")
	m, known := meanings[code]
	switch {
	case noSuchIPs.MatchString(said.Message):
		m, known = meanings[missingAddress], true
	case code == "badrequest" && r.bare && strings.HasSuffix(r.path, "/batchAddIp"):
		// bare metal says so where virtual machines have a code for their limit: Baidu's
		// driver, cce-network-v2/pkg/bce/api/cloud/error.go
		m, known = meaning{kind: cloud.ErrLimit}, true
	case m.why == driver.NoSuchInterface && (r.path == eniPath || strings.HasPrefix(r.path, subnetPath)):
		m.why = driver.Other // it is the subnet that there is not
	}
	switch {
	case status == http.StatusTooManyRequests:
		return meaning{kind: cloud.ErrThrottled}
	case status >= 500 && m.kind != cloud.ErrThrottled:
		return meaning{kind: lostKind(r)}
	case known:
		return m
	case status == http.StatusNotFound && strings.HasPrefix(r.path, eniPath+"/"):
		return meaning{cloud.ErrNotFound, driver.NoSuchInterface}
	case status == http.StatusNotFound:
		return meaning{kind: cloud.ErrNotFound}
	case status == http.StatusConflict:
		return meaning{cloud.ErrUnavailable, driver.Busy}
	case status == http.StatusBadRequest:
		return meaning{cloud.ErrForbidden, driver.Busy}
	}
	return meaning{kind: cloud.ErrForbidden}
}

// classify reads the answer, or makes a *driver.Error of it. What the API answers in its
// own words decides by its code, then by the HTTP status; what has no answer by whether
// the request can have arrived.
func (d *Driver) classify(r request, a wire.Answer) error {
	broken := a.Err != nil && a.Status != http.StatusTooManyRequests
	switch {
	case broken:
		return d.unanswered(r, a)
	case a.Status >= 400:
		return d.refused(r, a)
	case r.into == nil:
		return nil
	}
	if err := json.Unmarshal(a.Body, r.into); err != nil {
		return d.badAnswer(r, a.HTTPStatus()+": "+err.Error())
	}
	return nil
}

// refused is for the API's own words. What has none may be of something in between.
func (d *Driver) refused(r request, a wire.Answer) error {
	var said refusal
	text := a.HTTPStatus()
	if err := json.Unmarshal(a.Body, &said); err != nil {
		if a.Status < 500 && a.Status != http.StatusTooManyRequests { // what refuses for good says why, as the API does
			return &driver.Error{Kind: lostKind(r), Why: driver.Between, Detail: d.keys.Line(wire.StrangerOf(text, a.Header).Error())}
		}
		if said = (refusal{}); len(a.Body) > 0 {
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
	m := meaningOf(r, a.Status, said)
	out := &driver.Error{Kind: m.kind, Why: m.why, Detail: text, RetryAfter: a.After}
	if m.why == driver.Unauthorized {
		out.Action = r.method + " " + r.path // policies have rights of whole services
		out.Detail = out.Action + ": " + text
	}
	return out
}

// hints say what a person can do, by the API's code.
var hints = map[string]string{
	"requestexpired":        "set this machine's clock",
	"signaturedoesnotmatch": "check the access key",
	"invalidaccesskeyid":    "check the access key",
	"accessdenied":          "grant what conf/baidu/policy.json lists",
}

// unanswered is for a request that broke, or whose answer did.
func (d *Driver) unanswered(r request, a wire.Answer) error {
	kind, text := cloud.ErrUnavailable, "not sent: "
	if a.Sent {
		kind, text = lostKind(r), "no answer: "
	}
	switch {
	case a.Status == 0:
	case errors.Is(a.Err, wire.ErrLong), errors.Is(a.Err, wire.ErrElsewhere):
		text = a.HTTPStatus() + ": "
	default:
		text = a.HTTPStatus() + ", and the answer breaks off: "
	}
	out := &driver.Error{Kind: kind, Detail: d.keys.Line(text + a.Err.Error()), RetryAfter: a.After}
	if _, proxy := errors.AsType[*wire.Stranger](a.Err); proxy {
		out.Why = driver.Between
	}
	return out
}

// lostKind is the kind of a request that may have arrived and has no good answer.
func lostKind(r request) error {
	if r.mutates() {
		return cloud.ErrUnknown
	}
	return cloud.ErrUnavailable
}

// fail is an error of this package's own making, before a request. A context that has
// ended is the reason of whatever failed.
func (d *Driver) fail(ctx context.Context, kind error, text string) *driver.Error {
	if ended := context.Cause(ctx); ended != nil {
		kind, text = cloud.ErrUnavailable, ended.Error()
	}
	return &driver.Error{Kind: kind, Detail: d.keys.Line(text)}
}

// badAnswer is for an answer that is well formed and can't be true.
func (d *Driver) badAnswer(r request, text string) error {
	return &driver.Error{Kind: lostKind(r), Detail: d.keys.Line("bad answer: " + text)}
}
