package aws

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// tokenService is AWS STS in front of another HTTP client, as far as a service account of
// Kubernetes needs it: it changes a web identity token for the test's credentials, without
// the session token that real ones have, since the endpoint's static keys have none.
//
// It is no server at AWS_ENDPOINT_URL_STS: told where STS is, the SDK needs no region.
type tokenService struct {
	rest  *deaf
	mu    sync.Mutex
	asked []string // host and form
}

func (s *tokenService) Do(r *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(r.URL.Host, "sts.") {
		return s.rest.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Host+"?"+string(body))
	s.mu.Unlock()
	text := fmt.Sprintf(`<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><Expiration>2126-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, testKey, testSecret)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// The webhook of EKS that gives a pod its role sets AWS_REGION too; other installations
// of it may not, and nobody does for a static pod.
func TestAServiceAccountsRoleIsTakenInTheRegionThatIsKnown(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options // besides endpoint and metadata
		env  string  // AWS_REGION
		meta bool    // the metadata answers
	}{
		{"of the options", Options{Instance: "i-1", Region: "eu-test-1"}, "", false},
		{"of the options, not the environment", Options{Instance: "i-1", Region: "eu-test-1"}, "eu-test-2", false},
		{"of the options, instance of the metadata", Options{Region: "eu-test-1"}, "", true},
		{"of the environment", Options{Instance: "i-1"}, "eu-test-1", false},
		{"of the metadata", Options{Instance: "i-1"}, "", true},
		{"of the metadata, like the instance", Options{}, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, kind{endpoint: ec2.Options{Keys: map[string]string{testKey: testSecret}}})
			file := filepath.Join(t.TempDir(), "token")
			must(t, os.WriteFile(file, []byte("the-pods-token"), 0o600))
			t.Setenv("AWS_REGION", tt.env)
			t.Setenv("AWS_ENDPOINT_URL", "")
			t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
			t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::111122223333:role/enipool")
			tt.o.Endpoint, tt.o.Metadata = s.url, "http://127.0.0.1:1"
			if tt.meta {
				tt.o.Metadata = serve(t, s.Metadata("i-1"))
			}
			c := newNode(New(tt.o), engine.Options{})
			sts := &tokenService{rest: c.ear}
			c.d.http = sts
			if _, err := c.Interfaces(t.Context()); err != nil {
				t.Fatal(err)
			}
			asked := strings.Join(sts.asked, " and ")
			for _, part := range []string{"sts.eu-test-1.amazonaws.com?", "Action=AssumeRoleWithWebIdentity", "WebIdentityToken=the-pods-token"} {
				if len(sts.asked) != 1 || !strings.Contains(asked, part) {
					t.Errorf("STS was asked %q, without %s", asked, part)
				}
			}
		})
	}
}
