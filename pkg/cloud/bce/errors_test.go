package bce

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/baidubce/bce-sdk-go/bce"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	endpoint "github.com/enipool/enipool/pkg/cloud/sim/api/bce"
	"github.com/enipool/enipool/pkg/eni"
)

func TestTheCloudsCodesAreOfOurKinds(t *testing.T) {
	c, err := New(Options{})
	must(t, err)
	for _, tt := range []struct {
		code    string
		status  int
		mutates bool
		want    error
	}{
		{"RateLimit", 400, true, cloud.ErrThrottled},
		{"Anything", 429, true, cloud.ErrThrottled},
		{"RateLimit", 503, true, cloud.ErrThrottled},
		{"SubnetHasNoMoreIpException", 400, true, cloud.ErrSubnetFull},
		{"VmMemoryCanNotAttachMoreIpException", 400, true, cloud.ErrLimit},
		{"ExceedLimitException", 400, true, cloud.ErrLimit},
		{"QuotaLimitExceeded", 403, true, cloud.ErrLimit},
		{"EniIdException", 400, true, cloud.ErrNotFound},
		{"PrivateIPNotExistException", 400, true, cloud.ErrNotFound},
		{"NoSuchObject", 404, false, cloud.ErrNotFound},
		{"Unheard", 404, false, cloud.ErrNotFound},
		{"PrivateIpInUseException", 400, true, cloud.ErrUnavailable},
		{"Unheard", 409, true, cloud.ErrUnavailable},
		{"AccessDenied", 403, true, cloud.ErrForbidden},
		{"InvalidAccessKeyId", 403, false, cloud.ErrForbidden},
		{"SignatureDoesNotMatch", 400, true, cloud.ErrForbidden},
		{"RequestExpired", 400, true, cloud.ErrForbidden},
		{"Unheard", 400, true, cloud.ErrForbidden},
		{"InternalError", 500, true, cloud.ErrUnknown},
		{"Unheard", 502, true, cloud.ErrUnknown},
		{"Unheard", 503, true, cloud.ErrUnknown},
		{"InternalError", 500, false, cloud.ErrUnavailable},
	} {
		x := &exchange{ctx: t.Context(), status: tt.status, after: time.Second}
		x.sent.Store(true)
		err := c.classify(call{op: "Op", mutates: tt.mutates}, x, bce.NewBceServiceError(tt.code, "", "", tt.status))
		plain(&err)
		var e *cloud.Error
		if !errors.As(err, &e) || e.Kind != tt.want || e.RetryAfter != time.Second {
			t.Errorf("%s with %d, changing: %v: %v, want %v", tt.code, tt.status, tt.mutates, err, tt.want)
		}
	}
}

func TestThrottlingTellsHowLongToWait(t *testing.T) {
	s, c, _, i := pair(t)
	s.Endpoint.FailNext("BatchAddPrivateIp", api.Fault{Err: &api.Error{Reason: api.Throttled, RetryAfter: 7 * time.Second}})
	_, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1)
	var e *cloud.Error
	if !errors.As(err, &e) || e.Kind != cloud.ErrThrottled || e.RetryAfter != 7*time.Second {
		t.Errorf("error %#v", err)
	}
}

func TestARefusedConnectionIsUnavailableAndALostOneUnknown(t *testing.T) {
	s, c, w, i := pair(t)
	w.refuse(1)
	if _, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1); !errors.Is(err, cloud.ErrUnavailable) {
		t.Errorf("a refused connection: %v", err)
	}
	s.Endpoint.FailNext("BatchAddPrivateIp", api.Fault{Answer: api.Lost})
	if _, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("a lost answer: %v", err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	asked := false
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	c := reader(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := c.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) || asked {
		t.Errorf("error %v, asked elsewhere: %v", err, asked)
	}
	if err := c.deleteENI(t.Context(), call{op: "DeleteInterface", object: "eni-1"}); !errors.Is(err, cloud.ErrUnknown) || asked {
		t.Errorf("of a call without an answer: %v, asked elsewhere: %v", err, asked)
	}
}

// What the endpoint says, the log and a printed client may be seen by anybody.
func TestNoSecretIsInErrorsLogsOrPrints(t *testing.T) {
	withKeys(t)
	t.Setenv("BCE_SESSION_TOKEN", "0123456789session")
	var log strings.Builder
	s := newSite(t, setup{endpoint: endpoint.Options{}})
	c, _ := s.open(t, "i-n1", Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	var texts []string
	note := func(err error) {
		if err == nil {
			t.Error("no error, want one")
			return
		}
		texts = append(texts, err.Error())
	}
	_, err := c.Interfaces(t.Context()) // its session token is not the account's
	note(err)
	leak := "your key " + accessKey + " with secret " + secretKey + " and token 0123456789session"
	s.Endpoint.FailNext("", api.Fault{Err: &api.Error{Reason: api.Forbidden, Code: "AccessDenied", Status: 403, Detail: leak}})
	t.Setenv("BCE_SESSION_TOKEN", "")
	c.keys.drop(c.keys.now)
	_, err = c.Interfaces(t.Context())
	note(err)
	s.Endpoint.FailNext("GetInstanceDetail", api.Fault{Rewrite: func([]byte) []byte { return []byte(`{"instance":"` + leak + `"}`) }})
	_, err = c.Limits(t.Context())
	note(err)
	creds := Credentials{AccessKey: accessKey, SecretKey: secretKey, SessionToken: "0123456789session"}
	text, err := creds.MarshalJSON()
	must(t, err)
	texts = append(texts, log.String(), sprint("%v %+v %#v %s", creds), string(text))
	for _, text := range texts {
		for _, secret := range []string{accessKey, secretKey, "0123456789session"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q tells %s", text, secret)
			}
		}
	}
}

func TestCredentialsComeFromTheEnvironmentAFileOrTheRole(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{endpoint: endpoint.Options{Role: true}})
	meta := serve(t, s.Metadata("i-n1"))
	source, err := Usual(meta)
	must(t, err)
	get := func(want, token string) {
		t.Helper()
		got, err := source(t.Context())
		if err != nil || want != "" && (got.AccessKey != want || got.SessionToken != token) {
			t.Errorf("got key %q with token %q, %v; want %q", got.AccessKey, got.SessionToken, err, want)
		}
	}
	get(accessKey, "")
	t.Setenv("BCE_ACCESS_KEY_ID", "")
	if _, err := source(t.Context()); err == nil {
		t.Error("a secret without its key is no error")
	}
	t.Setenv("BCE_SECRET_ACCESS_KEY", "")
	must(t, os.Mkdir(os.Getenv("HOME")+"/.go-bcecli", 0o700))
	file := os.Getenv("HOME") + "/.go-bcecli/credentials"
	must(t, os.WriteFile(file, []byte("[Other]\nAk = no\n[Defaults]\nAk = of-the-file\nSk = its-secret\nSts = its-token\n"), 0o600))
	get("of-the-file", "its-token")
	must(t, os.WriteFile(file, []byte("[Defaults]\nAk = half\n"), 0o600))
	if _, err := source(t.Context()); err == nil {
		t.Error("a file without a secret is no error")
	}
	must(t, os.Remove(file))
	role, err := source(t.Context())
	if err != nil || !strings.HasPrefix(role.AccessKey, "role-") || role.SessionToken == "" || !role.Expires.Before(time.Now().Add(time.Hour)) {
		t.Errorf("the role's end %v, %v", role.Expires, err)
	}
	s = newSite(t, setup{})
	if source, err = Usual(serve(t, s.Metadata("i-n1"))); err != nil {
		t.Fatal(err)
	}
	if _, err := source(t.Context()); err == nil {
		t.Error("no credentials at all are no error")
	}
}

func TestWrongKeysAreForbiddenAndSayWhatToDo(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	c, _ := s.open(t, "i-n1", Options{})
	s.SetKeys(map[string]string{accessKey: "another"})
	_, err := c.Limits(t.Context())
	if !errors.Is(err, cloud.ErrForbidden) || !strings.Contains(err.Error(), "SignatureDoesNotMatch") || !strings.Contains(err.Error(), "check the access key") {
		t.Errorf("with a wrong secret: %v", err)
	}
	s.SetKeys(map[string]string{accessKey: secretKey})
	if _, err = c.Limits(t.Context()); err != nil {
		t.Errorf("with the right one again: %v", err)
	}
}

func TestOptionsThatCantBeRightAreRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"plain http elsewhere":     {Endpoint: "http://bcc.bj.baidubce.com"},
		"a path":                   {Endpoint: "https://bcc.bj.baidubce.com/v1"},
		"a user":                   {Endpoint: "https://me:secret@bcc.bj.baidubce.com"},
		"no URL":                   {Endpoint: "bcc.bj.baidubce.com"},
		"metadata on the internet": {Metadata: "http://8.8.8.8"},
		"both kinds of groups":     {SecurityGroups: []string{"g-1", "esg-1"}},
		"no group":                 {SecurityGroups: []string{"sg-1"}},
		"a long cluster":           {Cluster: strings.Repeat("x", 33)},
		"an instance with a slash": {Instance: "i/../x"},
		"a subnet with a slash":    {Subnets: []string{"a/b"}},
		"an unknown kind":          {Kind: "vm"},
		"a timeout below 0":        {Timeout: -1},
	} {
		if c, err := New(o); err == nil || c != nil {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
	for _, o := range []Options{{}, {Endpoint: "https://bcc.bj.baidubce.com"}, {Endpoint: "http://127.0.0.1:80"}, {Endpoint: "http://[::1]:80/"},
		{Metadata: "http://169.254.169.254"}, {SecurityGroups: []string{"esg-1", "esg-2"}}} {
		if _, err := New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestTheRegionsEndpointIsHTTPS(t *testing.T) {
	c, err := New(Options{Region: "gz", Instance: "i-1", VPC: "vpc-1", Zone: "zoneA", Kind: BCC})
	must(t, err)
	for bare, want := range map[bool]string{false: "https://bcc.gz.baidubce.com", true: "https://bbc.gz.baidubce.com"} {
		if got, err := c.endpoint(t.Context(), call{bare: bare}); err != nil || got != want {
			t.Errorf("endpoint %s, %v; want %s", got, err, want)
		}
	}
}
