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

	"github.com/enipool/enipool/pkg/cloud"
)

// client carries out the calls of a node in another process.
type client struct {
	url  string
	http *http.Client
	node string
}

// Dial returns the cloud of a node that another process serves, at unix:///path
// or http://host:port. It does not connect yet.
func Dial(endpoint, node string) (cloud.Cloud, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("simulated cloud: %w", err)
	}
	// One connection a call: that it is refused tells surely that the call did not
	// reach, and none is left open.
	t := &http.Transport{DisableKeepAlives: true}
	c := &client{node: node, http: &http.Client{Transport: t}}
	switch {
	case u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", u.Path)
		}
		c.url = "http://account/v1/calls"
	case u.Scheme == "http" && u.Host != "" && strings.Trim(u.Path, "/") == "":
		c.url = "http://" + u.Host + "/v1/calls"
	default:
		return nil, fmt.Errorf("simulated cloud: endpoint %q must be unix:///path or http://host:port", endpoint)
	}
	return stub(c.do), nil
}

// do carries out one call. Without an answer, it did not reach the cloud if there
// never was a connection.
func (c *client) do(ctx context.Context, r request) (reply, error) {
	r.Node = c.node
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	out, err := c.post(ctx, r)
	switch {
	case err == nil && out.Error == nil:
		return out.reply, nil
	case err == nil:
		return out.reply, out.Error.from(r)
	case connected && mutates(r.Method):
		return reply{}, &cloud.Error{Op: r.Method, Object: r.ENI, Kind: cloud.ErrUnknown, Detail: err.Error()}
	}
	return reply{}, &cloud.Error{Op: r.Method, Object: r.ENI, Kind: cloud.ErrUnavailable, Detail: err.Error()}
}

func (c *client) post(ctx context.Context, r request) (answer, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	h, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := c.http.Do(h)
	if err != nil {
		// Of its words only the last say anything: the URL is made up.
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return answer{}, err
	}
	defer resp.Body.Close()
	var out answer
	if resp.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("the server answers %s; is it a simulated cloud?", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return out, nil
}

// from makes the error of a call again.
func (w *wireError) from(r request) error {
	e := &cloud.Error{Op: r.Method, Object: w.Object, Kind: cloud.ErrUnknown, Detail: w.Detail, RetryAfter: w.RetryAfter}
	for _, kind := range cloud.Kinds() {
		if kind.Error() == w.Kind {
			e.Kind = kind
		}
	}
	return e
}
