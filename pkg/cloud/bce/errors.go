package bce

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/enipool/enipool/pkg/cloud"
)

// kindOf is the API's codes. They come with and without "Exception", and some
// services write them with another case.
var kindOf = map[string]error{
	"ratelimit":            cloud.ErrThrottled,
	"ratelimitexceeded":    cloud.ErrThrottled,
	"requestlimitexceeded": cloud.ErrThrottled,
	"toomanyrequests":      cloud.ErrThrottled,

	"subnethasnomoreip": cloud.ErrSubnetFull,

	"vmmemorycannotattachmoreip": cloud.ErrLimit,
	"exceedlimit":                cloud.ErrLimit,
	"limitexceeded":              cloud.ErrLimit,
	"quotaexceeded":              cloud.ErrLimit,
	"quotalimitexceeded":         cloud.ErrLimit,

	"eniid":             cloud.ErrNotFound,
	"privateipnotexist": cloud.ErrNotFound,
	"nosuchobject":      cloud.ErrNotFound,
	"nosuchkey":         cloud.ErrNotFound,

	"privateipinuse": cloud.ErrUnavailable, // another one got it first

	"accessdenied":          cloud.ErrForbidden,
	"invalidaccesskeyid":    cloud.ErrForbidden,
	"invalidhttpauthheader": cloud.ErrForbidden,
	"optinrequired":         cloud.ErrForbidden,
	"qualifynotpass":        cloud.ErrForbidden,
	"requestexpired":        cloud.ErrForbidden,
	"signaturedoesnotmatch": cloud.ErrForbidden,
	"inappropriatejson":     cloud.ErrForbidden,
	"invalidhttprequest":    cloud.ErrForbidden,
	"invaliduri":            cloud.ErrForbidden,
	"malformedjson":         cloud.ErrForbidden,
	mismatch:                cloud.ErrForbidden,
}

// failure is a failed call with what callers inside of the package tell it by.
type failure struct {
	failed cloud.Error
	code   string // of the API in normal form, "" if it did not answer
	status int    // of HTTP
}

func (f *failure) Error() string { return f.failed.Error() }
func (f *failure) Unwrap() error { return &f.failed }

// plain is how a method of Cloud returns: what fails is a *cloud.Error.
func plain(err *error) {
	if f, ok := errors.AsType[*failure](*err); ok {
		*err = &f.failed
	}
}

// mismatch is the code for a clientToken that was used with another request.
const mismatch = "idempotentparametermismatch"

// normal is the form of a code that kindOf has.
func normal(code string) string { return strings.TrimSuffix(strings.ToLower(code), "exception") }

// classify makes a *cloud.Error of what became of an exchange, nil if nothing is
// wrong. What the API answers in its own words decides by its code, then by the
// HTTP status; what has no answer by whether the request can have arrived.
func (c *Client) classify(k call, x *exchange, err error) error {
	if err == nil {
		return nil
	}
	service, answered := errors.AsType[*bce.BceServiceError](err)
	if !answered {
		return c.unanswered(k, x, err)
	}
	kind := kindOf[normal(service.Code)]
	switch {
	case x.status == http.StatusTooManyRequests:
		kind = cloud.ErrThrottled
	case x.status >= 500 && kind != cloud.ErrThrottled:
		kind = lost(k)
	case kind != nil:
	case x.status == http.StatusNotFound:
		kind = cloud.ErrNotFound
	case x.status == http.StatusConflict:
		kind = cloud.ErrUnavailable
	default: // 401, 403, and the 400s for what can't be right
		kind = cloud.ErrForbidden
	}
	text := service.Code + ": " + service.Message
	if hint := hintOf(service.Code); hint != "" {
		text += " (" + hint + ")"
	}
	if service.RequestId != "" {
		text += " (request " + service.RequestId + ")"
	}
	f := c.fail(k, kind, text)
	f.code, f.status, f.failed.RetryAfter = normal(service.Code), x.status, x.after
	return f
}

// unanswered is for a call that broke, or whose answer can't be read.
func (c *Client) unanswered(k call, x *exchange, err error) error {
	kind := cloud.ErrUnavailable
	if x.sent.Load() {
		kind = lost(k)
	}
	text := "bad answer: " + err.Error()
	switch {
	case x.err != nil:
		text = x.err.Error()
	case x.status == 0:
		text = err.Error()
	}
	if cause := context.Cause(x.ctx); cause != nil {
		text = cause.Error()
	}
	f := c.fail(k, kind, text)
	f.failed.RetryAfter = x.after
	return f
}

// lost is the kind of a call that may have arrived and has no good answer.
func lost(k call) error {
	if k.mutates {
		return cloud.ErrUnknown
	}
	return cloud.ErrUnavailable
}

// hintOf says what a person can do.
func hintOf(code string) string {
	switch code {
	case bce.EREQUEST_EXPIRED:
		return "set this machine's clock"
	case bce.ESIGNATURE_DOES_NOT_MATCH, bce.EINVALID_ACCESS_KEY_ID:
		return "check the access key"
	case bce.EACCESS_DENIED:
		return "grant what conf/baidu/policy.json lists"
	}
	return ""
}

// problem is an error of this package's own making. A context that has ended is
// the reason of whatever failed.
func (c *Client) problem(k call, kind, ended error, text string) error {
	if ended != nil {
		kind, text = cloud.ErrUnavailable, ended.Error()
	}
	return c.fail(k, kind, text)
}

// mostDetail is how much of the cloud's words is worth a line of a log.
const mostDetail = 400

func (c *Client) fail(k call, kind error, text string) *failure {
	text = strings.Join(strings.Fields(c.keys.hide(text)), " ")
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "..."
	}
	return &failure{failed: cloud.Error{Op: k.op, Object: k.object, Kind: kind, Detail: text}}
}

// badAnswer is for an answer that is well formed and can't be true.
func (c *Client) badAnswer(k call, text string) error {
	return c.problem(k, lost(k), nil, "bad answer: "+text)
}

// isCode tells whether the cloud answered with this code.
func isCode(err error, code string) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.code == code
}

// isState tells whether the cloud refused a call for what the object is at the
// moment, as far as its answer tells: with a code of no special meaning.
func isState(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && kindOf[f.code] == nil && (f.status == http.StatusBadRequest || f.status == http.StatusConflict)
}

// partly is the error of a method that fails after it has changed something: only
// Interfaces tells what.
func partly(err error, done string) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || f.failed.Kind == cloud.ErrUnknown {
		return err
	}
	e := f.failed
	text := done + ", and then " + e.Kind.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	e.Kind, e.Detail = cloud.ErrUnknown, text
	return &failure{failed: e}
}
