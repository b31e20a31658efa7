package aws

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// roleService gives an instance or a service account its role, or fails to.
type roleService struct {
	host  string // that it is at
	path  string
	fails func(r *http.Request) (*http.Response, error)
	rest  *deaf
}

func (s *roleService) Do(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Host, s.host) && strings.HasPrefix(r.URL.Path, s.path) {
		return s.fails(r)
	}
	return s.rest.Do(r)
}

func answers(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: r}, nil
	}
}

func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A change of which EC2 can't have heard has had no effect: nobody needs to look for one.
func TestAChangeWithoutCredentialsHasNotHappened(t *testing.T) {
	const metadata, sts = "127.0.0.1", "sts."
	const refused = `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`
	const throttled = `<ErrorResponse><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`
	for name, tt := range map[string]struct {
		host  string
		fails func(*http.Request) (*http.Response, error)
		kind  error
	}{
		"the metadata is overloaded":          {metadata, answers(503, ""), cloud.ErrUnavailable},
		"the metadata limits its rate":        {metadata, answers(429, ""), cloud.ErrUnavailable},
		"the metadata does not answer":        {metadata, hangs, cloud.ErrUnavailable},
		"the instance has no role":            {metadata, answers(404, ""), cloud.ErrForbidden},
		"STS is overloaded":                   {sts, answers(503, ""), cloud.ErrUnavailable},
		"STS limits its rate":                 {sts, answers(400, throttled), cloud.ErrUnavailable},
		"STS refuses the role":                {sts, answers(403, refused), cloud.ErrForbidden},
		"STS does not answer":                 {sts, hangs, cloud.ErrUnavailable},
		"STS answers what nobody understands": {sts, answers(200, "<html>"), cloud.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, kind{})
			d := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-1"))})
			service := &roleService{host: tt.host, fails: tt.fails, rest: quicken(d)}
			d.http = service
			if tt.host == sts {
				file := filepath.Join(t.TempDir(), "token")
				must(t, os.WriteFile(file, []byte("the-pods-token"), 0o600))
				t.Setenv("AWS_ENDPOINT_URL", "")
				t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
				t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/enipool")
			} else {
				service.path = "/latest/meta-data/iam/"
			}
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
			ctx := t.Context()
			if tt.kind == cloud.ErrUnavailable { // the SDK goes on trying
				end, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				ctx = end
			}
			_, err := d.Create(ctx, driver.Create{Subnet: "subnet-a", Token: "t"})
			if cloud.Kind(err) != tt.kind || s.Calls()["CreateNetworkInterface"] > 0 {
				t.Errorf("%v is not %v; the cloud was called %v", err, tt.kind, s.Calls())
			}
		})
	}
}

// A connection that is refused before the request is on its way carries nothing.
func TestAChangeOverAConnectionThatIsNotTrustedHasNotHappened(t *testing.T) {
	asked := false
	untrusted := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer untrusted.Close()
	bare(t)
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	d := New(Options{Endpoint: untrusted.URL, Instance: "i-1", Region: "eu-test-1"})
	if err := d.Delete(t.Context(), "eni-1", ""); !errors.Is(err, cloud.ErrUnavailable) || asked {
		t.Errorf("%v; the request arrived: %v", err, asked)
	}
}
