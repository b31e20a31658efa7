package aws

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"syscall"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/eni"
)

// oneAnswer is an HTTP client that always fails, or answers, in the same way.
type oneAnswer struct {
	status int
	body   string
	server string
	breaks error // after the body
	err    error // instead of an answer
	asked  int
}

func (a *oneAnswer) Do(r *http.Request) (*http.Response, error) {
	a.asked++
	if a.err != nil {
		if op, ok := errors.AsType[*net.OpError](a.err); !ok || op.Op != "dial" {
			httptrace.ContextClientTrace(r.Context()).WroteHeaders()
		}
		return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: a.err}
	}
	body := io.Reader(strings.NewReader(a.body))
	if a.breaks != nil {
		body = io.MultiReader(body, failingReader{a.breaks})
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{"Server": {a.server}}, Body: io.NopCloser(body), Request: r}, nil
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443}, Err: err}
}

func TestAFailureSaysInPlainWordsWhatHappened(t *testing.T) {
	const (
		ec2Says   = "<Response><Errors><Error><Code>InvalidThing</Code><Message>It is wrong.</Message></Error></Errors></Response>"
		codeAlone = "<Response><Errors><Error><Code>InternalError</Code></Error></Errors></Response>"
		wordAlone = "<Response><Errors><Error><Message>It is wrong.</Message></Error></Errors></Response>"
		half      = "<DescribeNetworkInterfacesResponse><networkInterfaceSet>"
	)
	for name, tt := range map[string]struct {
		answer       oneAnswer
		read, change string // what both fail with, without what they are about
	}{
		"an error of EC2": {oneAnswer{status: 400, body: ec2Says}, "forbidden: InvalidThing: It is wrong.", "forbidden: InvalidThing: It is wrong."},
		"a code alone":    {oneAnswer{status: 500, body: codeAlone}, "cloud unavailable: InternalError: HTTP 500 Internal Server Error", "outcome unknown: InternalError: HTTP 500 Internal Server Error"},
		"words alone":     {oneAnswer{status: 400, body: wordAlone}, "forbidden: HTTP 400 Bad Request: It is wrong.", "forbidden: HTTP 400 Bad Request: It is wrong."},
		"no body":         {oneAnswer{status: 502}, "cloud unavailable: HTTP 502 Bad Gateway, and no error of EC2 with it", "outcome unknown: HTTP 502 Bad Gateway, and no error of EC2 with it"},
		"a proxy's page":  {oneAnswer{status: 503, body: "<html><h1>Busy</h1></html>"}, "cloud unavailable: HTTP 503 Service Unavailable, and no error of EC2 with it", "outcome unknown: HTTP 503 Service Unavailable, and no error of EC2 with it"},
		"a proxy that refuses": {oneAnswer{status: 403}, "cloud unavailable: HTTP 403 Forbidden, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy",
			"outcome unknown: HTTP 403 Forbidden, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		"a proxy's page that refuses": {oneAnswer{status: 403, server: "squid/5.7", body: "<html><h1>Access Denied</h1></html>"},
			"cloud unavailable: HTTP 403 Forbidden from \"squid/5.7\", and no error of the cloud with it: something between this node and the cloud answered, such as a proxy",
			"outcome unknown: HTTP 403 Forbidden from \"squid/5.7\", and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		"a page that is no XML": {oneAnswer{status: 403, body: "<html><p>Access<br>Denied</html>"},
			"cloud unavailable: HTTP 403 Forbidden, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy",
			"outcome unknown: HTTP 403 Forbidden, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		"a refusal that breaks off": {oneAnswer{status: 403, body: "<Response><Errors>", breaks: io.ErrUnexpectedEOF},
			"cloud unavailable: HTTP 403 Forbidden, and the answer breaks off: the connection was closed", "outcome unknown: HTTP 403 Forbidden, and the answer breaks off: the connection was closed"},
		"a proxy that has too many": {oneAnswer{status: 429}, "throttled: HTTP 429 Too Many Requests, and no error of EC2 with it", "throttled: HTTP 429 Too Many Requests, and no error of EC2 with it"},
		"a status of nobody":        {oneAnswer{status: 599}, "cloud unavailable: HTTP 599, and no error of EC2 with it", "outcome unknown: HTTP 599, and no error of EC2 with it"},
		"no connection": {oneAnswer{err: opError("dial", syscall.ECONNREFUSED)}, "cloud unavailable: not sent to https://ec2.eu-test-1.amazonaws.com/: dial tcp 192.0.2.1:443: connection refused",
			"cloud unavailable: not sent to https://ec2.eu-test-1.amazonaws.com/: dial tcp 192.0.2.1:443: connection refused"},
		"closed before the answer": {oneAnswer{err: io.EOF}, "cloud unavailable: no answer from https://ec2.eu-test-1.amazonaws.com/: the connection was closed",
			"outcome unknown: no answer from https://ec2.eu-test-1.amazonaws.com/: the connection was closed"},
		"reset before the answer": {oneAnswer{err: opError("read", syscall.ECONNRESET)}, "cloud unavailable: no answer from https://ec2.eu-test-1.amazonaws.com/: read tcp 192.0.2.1:443: connection reset by peer",
			"outcome unknown: no answer from https://ec2.eu-test-1.amazonaws.com/: read tcp 192.0.2.1:443: connection reset by peer"},
		"closed within the answer": {oneAnswer{status: 200, body: half, breaks: opError("read", net.ErrClosed)},
			"cloud unavailable: HTTP 200 OK, and the answer breaks off: the connection was closed", "outcome unknown: HTTP 200 OK, and the answer breaks off: the connection was closed"},
		"cut within the answer": {oneAnswer{status: 200, body: half, breaks: io.ErrUnexpectedEOF},
			"cloud unavailable: HTTP 200 OK, and the answer breaks off: the connection was closed", "outcome unknown: HTTP 200 OK, and the answer breaks off: the connection was closed"},
		"reset within the answer": {oneAnswer{status: 200, body: half, breaks: opError("read", syscall.ECONNRESET)},
			"cloud unavailable: HTTP 200 OK, and the answer breaks off: read tcp 192.0.2.1:443: connection reset by peer",
			"outcome unknown: HTTP 200 OK, and the answer breaks off: read tcp 192.0.2.1:443: connection reset by peer"},
	} {
		c, _ := newCanned(t, engine.Options{})
		c.d.http = &tt.answer
		_, err := c.Interfaces(t.Context())
		if err == nil || err.Error() != "Interfaces: "+tt.read {
			t.Errorf("%s: a read fails with\n%v, want\nInterfaces: %s", name, err, tt.read)
		}
		if name == "closed within the answer" && tt.answer.asked != readTries {
			t.Errorf("%s: it was tried %d times", name, tt.answer.asked)
		}
		err = c.d.Unassign(t.Context(), driver.Unassign{On: driver.Interface{ID: "eni-1"}, Family: eni.IPv4, Addresses: addrs("10.0.0.100")})
		if err == nil || err.Error() != tt.change {
			t.Errorf("%s: a change fails with\n%v, want\n%s", name, err, tt.change)
		}
		if is := driver.Reason(err) == cloud.Between; is != strings.HasSuffix(tt.change, "such as a proxy") {
			t.Errorf("%s: who answered was in between: %t", name, is)
		}
	}
}

// A proxy that lets nobody through is named: net/http itself would say "Forbidden" and no more.
func TestAProxyThatRefusesTheConnectionIsNamed(t *testing.T) {
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	proxy, err := url.Parse(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "squid/5.7")
		w.WriteHeader(http.StatusForbidden)
	})))
	must(t, err)
	d := New(Options{Instance: "i-1", Region: "eu-test-1"})
	d.http = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy = http.ProxyURL(proxy) })
	err = d.Unassign(t.Context(), driver.Unassign{On: driver.Interface{ID: "eni-1"}, Family: eni.IPv4, Addresses: addrs("10.0.0.100")})
	want := `cloud unavailable: not sent to https://ec2.eu-test-1.amazonaws.com/: the proxy ` + proxy.Host + ` answers HTTP 403 Forbidden from "squid/5.7"`
	if err == nil || err.Error() != want || driver.Reason(err) != cloud.Between {
		t.Errorf("%v, for reason %d; want\n%s", err, driver.Reason(err), want)
	}
}

func TestAFailureOfWhatComesBeforeTheRequestIsToldWithoutTheSDKsPrefixes(t *testing.T) {
	bare(t)
	c := newNode(New(Options{Instance: "i-1", Region: "eu-test-1", Metadata: serve(t, http.NotFoundHandler())}), engine.Options{})
	_, err := c.Interfaces(t.Context())
	if err == nil || strings.Contains(err.Error(), "operation error EC2") || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("no credentials: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := c.Interfaces(ctx); err == nil || !strings.Contains(err.Error(), "given up before") {
		t.Errorf("a context that has ended: %v", err)
	}
}
