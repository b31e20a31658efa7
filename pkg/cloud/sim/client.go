package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// Remote is the driver of a node of an account that another process serves. It behaves as
// EC2 does.
type Remote struct {
	CrossSubnet bool // an ENI carries addresses of other subnets: set it before the first call

	url  string
	http *http.Client
	node string
}

var _ driver.Driver = (*Remote)(nil)

// RemoteSettle is how long an engine over Remote waits for what was made to show: an
// account that is served has no lag as long as that.
const RemoteSettle = time.Second

// Dial returns the driver of a node of an account that another process serves, at
// unix:///path or http://host:port. It does not connect yet.
func Dial(endpoint, node string) (*Remote, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("simulated cloud: %w", err)
	}
	// One connection a call: that it is refused tells surely that the call did not
	// reach, and none is left open.
	t := &http.Transport{DisableKeepAlives: true}
	remote := &Remote{node: node, http: &http.Client{Transport: t}}
	switch {
	case parsed.Scheme == "unix" && parsed.Host == "" && strings.HasPrefix(parsed.Path, "/"):
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", parsed.Path)
		}
		remote.url = "http://account/v1/calls"
	case parsed.Scheme == "http" && parsed.Host != "" && strings.Trim(parsed.Path, "/") == "":
		remote.url = "http://" + parsed.Host + "/v1/calls"
	default:
		return nil, fmt.Errorf("simulated cloud: endpoint %q must be unix:///path or http://host:port", endpoint)
	}
	return remote, nil
}

// remoteCall carries out one call. Without an answer, it did not reach the cloud if there
// never was a connection.
func remoteCall[R any](ctx context.Context, c *Remote, method string, args any) (value R, err error) {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	out, err := c.post(ctx, method, args)
	if err == nil && out.Error == nil {
		err = json.Unmarshal(out.Value, &value)
	}
	switch {
	case err == nil && out.Error == nil:
		return value, nil
	case err == nil:
		return value, out.Error.asError()
	case connected && !isRead(method):
		return value, &driver.Error{Kind: cloud.ErrUnknown, Detail: err.Error()}
	}
	return value, &driver.Error{Kind: cloud.ErrUnavailable, Detail: err.Error()}
}

func (c *Remote) post(ctx context.Context, method string, args any) (wireReply, error) {
	var answer wireReply
	text, err := json.Marshal(args)
	if err != nil {
		return answer, err
	}
	body, err := json.Marshal(wireCall{Method: method, Node: c.node, Args: text})
	if err != nil {
		return answer, err
	}
	h, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	resp, err := c.http.Do(h)
	if err != nil {
		// Of its words only the last say anything: the URL is made up.
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return wireReply{}, err
	}
	defer resp.Body.Close()
	var out wireReply
	if resp.StatusCode != http.StatusOK {
		return wireReply{}, fmt.Errorf("the server answers %s; is it a simulated cloud?", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return wireReply{}, fmt.Errorf("read the answer: %w", err)
	}
	return out, nil
}

// asError makes the error of a call again.
func (w *wireError) asError() error {
	e := &driver.Error{Kind: cloud.ErrUnknown, Why: w.Why, Detail: w.Detail, RetryAfter: w.RetryAfter}
	for _, kind := range cloud.Kinds() {
		if kind.Error() == w.Kind {
			e.Kind = kind
		}
	}
	return e
}
