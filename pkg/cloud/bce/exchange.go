package bce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/baidubce/bce-sdk-go/auth"
	sdkhttp "github.com/baidubce/bce-sdk-go/http"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// request is a request to the API.
type request struct {
	method, path string
	query        map[string]string // an empty value is sent, as in "?attach"
	token        string            // for what changes something
	body, into   any               // of the request and of its answer, nil for none
	bare         bool              // to the service for bare metal
}

// mutates tells whether the request changes something.
func (r request) mutates() bool { return r.method != http.MethodGet }

// send makes a request: once if it changes something, else again after each refusal for the
// rate. Its error is a *driver.Error.
func (d *Driver) send(ctx context.Context, r request) error {
	if r.mutates() {
		return d.sendOnce(ctx, r)
	}
	return readRetries(d.pause).Repeat(ctx, func() error { return d.sendOnce(ctx, r) })
}

// sendOnce makes the request once, within the timeout of the Options.
func (d *Driver) sendOnce(ctx context.Context, req request) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	keys, err := d.keys.get(ctx)
	if err != nil {
		kind := cloud.ErrForbidden
		if _, passes := errors.AsType[momentary](err); passes {
			kind = cloud.ErrUnavailable
		}
		out := d.ownError(ctx, kind, "not sent, without credentials: "+err.Error())
		out.Why = cloud.Unsigned
		return out
	}
	endpoint, err := d.endpoint(ctx, req.bare)
	if err != nil {
		return err
	}
	signed, err := req.signedHTTP(ctx, endpoint, keys)
	if err != nil {
		return d.ownError(ctx, cloud.ErrForbidden, err.Error())
	}
	err = d.readAnswer(req, wire.Exchange(d.base, signed, mostBody, &d.clock))
	if errors.Is(err, cloud.ErrForbidden) {
		d.keys.markRefused(keys) // those of a role may have run out early
	}
	return err
}

// signedHTTP makes the HTTP request, with its signature.
func (r request) signedHTTP(ctx context.Context, endpoint string, keys Credentials) (*http.Request, error) {
	body := []byte{}
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, endpoint+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	query := maps.Clone(r.query)
	if query == nil {
		query = map[string]string{}
	}
	if r.token != "" {
		query["clientToken"] = r.token
	}
	// The SDK signs, and also writes the query: the signature covers its own way of escaping it.
	s := &sdkhttp.Request{}
	s.SetMethod(r.method)
	s.SetUri(r.path)
	s.SetParams(query)
	s.SetHeaders(map[string]string{"Host": req.URL.Host, "User-Agent": "enipool", "Content-Type": "application/json;charset=utf-8",
		"x-bce-date": time.Now().UTC().Format("2006-01-02T15:04:05Z")})
	(&auth.BceV1Signer{}).Sign(s, &auth.BceCredentials{AccessKeyId: keys.AccessKey, SecretAccessKey: keys.SecretKey, SessionToken: keys.SessionToken},
		&auth.SignOptions{HeadersToSign: auth.DEFAULT_HEADERS_TO_SIGN, ExpireSeconds: 300})
	req.URL.RawQuery = s.QueryString()
	for name, value := range s.Headers() {
		req.Header.Set(name, value)
	}
	return req, nil
}

// mostBody is how many bytes of an answer are read: 1,000 full ENIs are 4 MB.
const mostBody = 32 << 20

// endpoint returns where the service is: eni, vpc and bcc are one.
func (d *Driver) endpoint(ctx context.Context, bare bool) (string, error) {
	if d.o.Endpoint != "" {
		return d.o.Endpoint, nil
	}
	s, err := d.Self(ctx)
	if err != nil {
		return "", err
	}
	if bare {
		return "https://bbc." + s.Region + ".baidubce.com", nil
	}
	return "https://bcc." + s.Region + ".baidubce.com", nil
}
