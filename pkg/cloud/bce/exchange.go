package bce

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/baidubce/bce-sdk-go/auth"
	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/enipool/enipool/pkg/cloud"
)

// mostBody is how many bytes of an answer are read: 1,000 full ENIs are 4 MB.
const mostBody = 32 << 20

// exchange is one HTTP exchange with the API. It binds the SDK's call to a context
// and keeps what the SDK hides: whether the request went out, and how it ended.
type exchange struct {
	ctx    context.Context
	base   http.RoundTripper
	sent   atomic.Bool // the request may have reached the cloud
	status int
	date   string        // by the cloud's clock
	after  time.Duration // the cloud's wish
	err    error
}

// RoundTrip carries out the request under the exchange's context in place of the
// request's own, which is the SDK's background.
func (x *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	resp, err := x.base.RoundTrip(r.WithContext(ctx))
	if err != nil {
		x.err = err
		return nil, err
	}
	x.status, x.date = resp.StatusCode, resp.Header.Get("Date")
	x.after = retryAfter(resp.Header.Get("Retry-After"))
	resp.Body = &body{ReadCloser: resp.Body, left: mostBody, x: x}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		_ = resp.Body.Close()
		x.err = errors.New("the endpoint redirects to elsewhere")
		return nil, x.err
	}
	return resp, nil
}

// body is an answer's body of limited length.
type body struct {
	io.ReadCloser
	left int
	x    *exchange
}

var errLong = errors.New("the answer is too long")

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.x.err = errLong
		return 0, errLong
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil && err != io.EOF {
		b.x.err = err
	}
	return n, err
}

// retryAfter reads the header's form in seconds; the API has no other.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(header)
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// transport is for one client: proxies from the environment, TLS verified, and no
// waiting for minutes.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   4,
	}
}

// stay follows no redirect: a signature is for one host.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// call is what an exchange is about, for its error.
type call struct {
	op      string // the method of Cloud
	object  string
	mutates bool
	bare    bool // of the service for bare metal
}

// do runs a call of the SDK: one that changes something once, one that reads again
// where the cloud had too many. Its error is a *cloud.Error.
func (c *Client) do(ctx context.Context, k call, f func(*bce.BceClient) error) error {
	for try := 1; ; try++ {
		err := c.once(ctx, k, f)
		if err == nil || !c.again(ctx, k, try, err) {
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, k call, f func(*bce.BceClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	keys, err := c.keys.get(ctx)
	if err != nil {
		return c.problem(k, cloud.ErrForbidden, ctx.Err(), "find credentials: "+err.Error())
	}
	endpoint, err := c.endpoint(ctx, k)
	if err != nil {
		return err
	}
	x := &exchange{ctx: ctx, base: c.base}
	err = f(&bce.BceClient{
		Signer:     &auth.BceV1Signer{},
		HTTPClient: &http.Client{Transport: x, CheckRedirect: stay},
		Config: &bce.BceClientConfiguration{
			Endpoint:    endpoint,
			UserAgent:   "enipool " + bce.DEFAULT_USER_AGENT,
			Retry:       bce.NewNoRetryPolicy(),
			Credentials: &auth.BceCredentials{AccessKeyId: keys.AccessKey, SecretAccessKey: keys.SecretKey, SessionToken: keys.SessionToken},
			SignOption:  &auth.SignOptions{HeadersToSign: auth.DEFAULT_HEADERS_TO_SIGN, ExpireSeconds: 300},
		},
	})
	err = c.classify(k, x, err)
	if theirs, wrong := http.ParseTime(x.date); wrong == nil {
		c.skew.Store(int64(time.Since(theirs)))
	}
	if errors.Is(err, cloud.ErrForbidden) {
		c.keys.drop(keys) // those of a role may have run out early
	}
	return err
}

// endpoint returns where the service is: eni, vpc and bcc are one.
func (c *Client) endpoint(ctx context.Context, k call) (string, error) {
	if c.o.Endpoint != "" {
		return c.o.Endpoint, nil
	}
	me, err := c.whoami(ctx, k.op)
	if err != nil {
		return "", err
	}
	if k.bare {
		return "https://bbc." + me.region + ".baidubce.com", nil
	}
	return "https://bcc." + me.region + ".baidubce.com", nil
}
