package bce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/cloud/wire"
	"github.com/enipool/enipool/pkg/eni"
	endpoint "github.com/enipool/enipool/test/fakecloud/bce"
)

func TestTheCloudsCodesAreOfOurKinds(t *testing.T) {
	c, err := New(Options{})
	must(t, err)
	const addresses, one = "/v1/eni/eni-1/privateIp/batchAdd", "/v1/eni/eni-1"
	for _, tt := range []struct {
		method, path, code string
		status             int
		want               error
		why                cloud.Why
	}{
		{"POST", addresses, "RateLimit", 400, cloud.ErrThrottled, cloud.Other},
		{"POST", addresses, "Anything", 429, cloud.ErrThrottled, cloud.Other},
		{"POST", addresses, "RateLimit", 503, cloud.ErrThrottled, cloud.Other},
		{"POST", addresses, "SubnetHasNoMoreIpException", 400, cloud.ErrSubnetFull, cloud.Other},
		{"POST", addresses, "VmMemoryCanNotAttachMoreIpException", 400, cloud.ErrLimit, cloud.Other},
		{"POST", addresses, "ExceedLimitException", 400, cloud.ErrLimit, cloud.Other},
		{"POST", addresses, "QuotaLimitExceeded", 403, cloud.ErrLimit, cloud.Other},
		{"POST", addresses, "EniIdException", 400, cloud.ErrNotFound, cloud.NoSuchInterface},
		{"POST", addresses, "PrivateIPNotExistException", 400, cloud.ErrNotFound, cloud.NoSuchAddress},
		{"GET", one, "NoSuchObject", 404, cloud.ErrNotFound, cloud.NoSuchInterface},
		{"GET", one, "Unheard", 404, cloud.ErrNotFound, cloud.NoSuchInterface},
		{"DELETE", one, "Unheard", 404, cloud.ErrNotFound, cloud.NoSuchInterface},
		{"GET", "/v2/instance/i-1", "NoSuchObject", 404, cloud.ErrNotFound, cloud.NoSuchInstance},
		{"GET", "/v1/vpcPort/i-1", "NoSuchObject", 404, cloud.ErrNotFound, cloud.NoSuchInstance},
		{"GET", "/v2/instance/i-1", "Unheard", 404, cloud.ErrNotFound, cloud.Other},
		{"POST", "/v1/eni", "NoSuchObject", 404, cloud.ErrNotFound, cloud.Other},
		{"GET", "/v1/subnet/sbn-1", "NoSuchObject", 404, cloud.ErrNotFound, cloud.NoSuchSubnet},
		{"POST", addresses, "PrivateIpInUseException", 400, cloud.ErrUnavailable, cloud.AddressTaken},
		{"POST", addresses, "Unheard", 409, cloud.ErrUnavailable, cloud.Busy},
		{"POST", addresses, "AccessDenied", 403, cloud.ErrForbidden, cloud.Unauthorized},
		{"GET", one, "InvalidAccessKeyId", 403, cloud.ErrForbidden, cloud.Other},
		{"POST", addresses, "SignatureDoesNotMatch", 400, cloud.ErrForbidden, cloud.Other},
		{"POST", addresses, "RequestExpired", 400, cloud.ErrForbidden, cloud.WrongClock},
		{"POST", addresses, "Unheard", 400, cloud.ErrForbidden, cloud.Busy},
		{"POST", addresses, "Unheard", 403, cloud.ErrForbidden, cloud.Other},
		{"POST", "/v1/eni", "IdempotentParameterMismatch", 403, cloud.ErrForbidden, cloud.TokenReused},
		{"POST", addresses, "InternalError", 500, cloud.ErrUnknown, cloud.Other},
		{"POST", addresses, "Unheard", 502, cloud.ErrUnknown, cloud.Other},
		{"POST", addresses, "Unheard", 503, cloud.ErrUnknown, cloud.Other},
		{"GET", one, "InternalError", 500, cloud.ErrUnavailable, cloud.Other},
	} {
		err := c.readAnswer(request{method: tt.method, path: tt.path},
			wire.Answer{Sent: true, Status: tt.status, After: time.Second, Body: []byte(`{"code":"` + tt.code + `"}`)})
		var e *driver.Error
		if !errors.As(err, &e) || e.Kind != tt.want || e.Why != tt.why || e.RetryAfter != time.Second {
			t.Errorf("%s %s: %s with %d: %#v, want %v for reason %d", tt.method, tt.path, tt.code, tt.status, err, tt.want, tt.why)
		}
	}
}

// What Baidu's own driver knows of codes that are no use without their call or words:
// cce-network-v2/pkg/bce/api/cloud/error.go (BadRequest is how BBC says that an ENI is
// full, "is invalid" how it says that an ENI lacks an address), its error_test.go for
// the words, and pkg/bce/vpceni/node_bcc.go of earlier releases for EniStatusException.
func TestCodesThatMeanSomethingOnlyWithTheirCall(t *testing.T) {
	c, err := New(Options{})
	must(t, err)
	const noSuchIP = "The ips [192.168.24.51] is invalid"
	add, take := request{method: "POST", path: "/v1/eni/eni-1/privateIp/batchAdd"}, request{method: "POST", path: "/v1/eni/eni-1/privateIp/batchDel"}
	bareAdd, bareTake := request{method: "PUT", path: "/v1/instance/batchAddIp", bare: true}, request{method: "PUT", path: "/v1/instance/batchDelIp", bare: true}
	for _, tt := range []struct {
		name          string
		r             request
		code, message string
		want          error
		why           cloud.Why
	}{
		{"bare metal is full", bareAdd, "BadRequest", "", cloud.ErrLimit, cloud.Other},
		{"a virtual machine's argument is wrong", add, "BadRequest", "", cloud.ErrForbidden, cloud.Busy},
		{"bare metal gives back what can't be", bareTake, "BadRequest", "", cloud.ErrForbidden, cloud.Busy},
		{"bare metal lacks the address", bareTake, "NoSuchObject", noSuchIP, cloud.ErrNotFound, cloud.NoSuchAddress},
		{"bare metal lacks the address, by another code", bareTake, "BadRequest", noSuchIP, cloud.ErrNotFound, cloud.NoSuchAddress},
		{"the instance is gone", bareTake, "NoSuchObject", "the instance does not exist", cloud.ErrNotFound, cloud.NoSuchInterface},
		{"an ENI is gone", take, "EniIdException", "The param eniId is invalid", cloud.ErrNotFound, cloud.NoSuchInterface},
		{"an ENI is on its way", add, "EniStatusException", "The eni status is not allowed to operate", cloud.ErrUnavailable, cloud.Busy},
	} {
		err := c.readAnswer(tt.r, wire.Answer{Sent: true, Status: http.StatusBadRequest, Body: []byte(`{"code":"` + tt.code + `","message":"` + tt.message + `"}`)})
		if !errors.Is(err, tt.want) || driver.Reason(err) != tt.why {
			t.Errorf("%s: %#v, want %v for reason %d", tt.name, err, tt.want, tt.why)
		}
	}
}

// Bare metal says NoSuchObject for the address, as for an instance that is gone: that
// must not pass for all addresses being gone.
func TestBareMetalThatLacksOneAddressLosesTheOthers(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{typ: "bbc.s3"})
	c, _ := s.open(t, "i-n1", engine.Options{})
	mine := own(t, c)
	got, err := c.AssignAddresses(t.Context(), mine.ID, eni.IPv4, 3)
	must(t, err)
	s.Endpoint.FailNext("InstanceBatchDelIp", sim.Fault{Err: &sim.Error{Reason: sim.Invalid, Code: "NoSuchObject", Status: http.StatusBadRequest,
		Detail: "The ips [" + got[0].String() + "] is invalid"}})
	must(t, c.UnassignAddresses(t.Context(), mine.ID, got))
	if mine = own(t, c); len(mine.Addresses) > 0 {
		t.Errorf("%v are still there", mine.Addresses)
	}
}

// The text of a failure names the HTTP status where the cloud's own words are missing,
// and has no empty parts.
func TestWhatAFailureSays(t *testing.T) {
	long := strings.Repeat("x", 2*400)
	for _, tt := range []struct{ name, status, body, want string }{
		{"the cloud's own words", "400 Bad Request", `{"code":"EniIdException","message":"The param eniId is invalid","requestId":"r-1"}`,
			"not found: EniIdException: The param eniId is invalid (request r-1)"},
		{"a code alone", "400 Bad Request", `{"code":"EniIdException"}`, "not found: EniIdException: HTTP 400 Bad Request"},
		{"an empty code", "404 Not Found", `{"code":"","message":"no such thing"}`, "not found: HTTP 404 Not Found: no such thing"},
		{"nothing in it", "404 Not Found", `{}`, "not found: HTTP 404 Not Found"},
		{"empty words", "404 Not Found", `{"code":"","message":""}`, "not found: HTTP 404 Not Found"},
		{"no body", "502 Bad Gateway", "", "outcome unknown: HTTP 502 Bad Gateway"},
		{"no body of a failure", "500 Internal Server Error", "", "outcome unknown: HTTP 500 Internal Server Error"},
		{"a proxy's page", "503 Service Unavailable", "<html>", "outcome unknown: HTTP 503 Service Unavailable, and its body is no error of the API"},
		{"a proxy's page that refuses", "403 Forbidden", "<html>", "outcome unknown: HTTP 403 Forbidden, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		{"a proxy's page that names itself", "407 Proxy Authentication Required\r\nServer: squid/5.7", "<html>", "outcome unknown: HTTP 407 Proxy Authentication Required from \"squid/5.7\", and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		{"nothing to say", "403 Forbidden\r\nVia: 1.1 gate (squid)", "", "outcome unknown: HTTP 403 Forbidden from \"1.1 gate (squid)\", and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		{"a page for what is not there", "404 Not Found", "<html>", "outcome unknown: HTTP 404 Not Found, and no error of the cloud with it: something between this node and the cloud answered, such as a proxy"},
		{"a status without words", "599 ", "", "outcome unknown: HTTP 599"},
		{"a status without words, and a page", "599 ", "<html>", "outcome unknown: HTTP 599, and its body is no error of the API"},
		{"too many words", "400 Bad Request", `{"code":"NoSuchObject","message":"` + long + `","requestId":"r-1"}`,
			"not found: NoSuchObject: " + long[:400-len("NoSuchObject: ")] + "... (request r-1)"},
		{"success that is no JSON", "200 OK", "<html>", "outcome unknown: bad answer: HTTP 200 OK: invalid character '<' looking for beginning of value"},
		{"a redirect", "307 Temporary Redirect", "", "outcome unknown: HTTP 307 Temporary Redirect: the endpoint redirects to elsewhere"},
		{"success that breaks off", "200 OK", `{"privateIp` + cut, "outcome unknown: HTTP 200 OK, and the answer breaks off: unexpected EOF"},
		{"a refusal that breaks off", "400 Bad Request", `{"code` + cut, "outcome unknown: HTTP 400 Bad Request, and the answer breaks off: unexpected EOF"},
		{"throttling that breaks off", "429 Too Many Requests", `{"code` + cut, "throttled: HTTP 429 Too Many Requests, and its body is no error of the API"},
		{"no answer", "", "", "outcome unknown: no answer: EOF"},
	} {
		d := reading(t, func(w http.ResponseWriter, _ *http.Request) { hijack(t, w, tt.status, tt.body) })
		_, err := d.Assign(t.Context(), driver.Assign{On: driver.Interface{ID: "eni-1"}, Family: eni.IPv4, Count: driver.Count{Singles: 1}, Token: "t"})
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n%v, want\n%s", tt.name, err, tt.want)
		}
		if is := driver.Reason(err) == cloud.Between; is != strings.Contains(tt.want, "such as a proxy") {
			t.Errorf("%s: who answered was in between: %t", tt.name, is)
		}
	}
}

// cut ends a body that is announced longer.
const cut = "\x00"

// hijack writes an answer with just this status line, "" for none at all.
func hijack(t *testing.T, w http.ResponseWriter, status, body string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	if status == "" {
		return
	}
	body, short := strings.CutSuffix(body, cut)
	length := len(body)
	if short {
		length++
	}
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, length, body); err != nil {
		t.Error(err)
	}
}

// A proxy that lets nobody through is named: net/http itself would say "Forbidden" and no more.
func TestAProxyThatRefusesTheConnectionIsNamed(t *testing.T) {
	withKeys(t)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "squid/5.7")
		w.WriteHeader(http.StatusForbidden)
	}))
	defer gate.Close()
	proxy, err := url.Parse(gate.URL)
	must(t, err)
	d, err := New(Options{Region: "bj", Instance: "i-1", VPC: "vpc-1", Zone: "zoneA", Kind: BCC})
	must(t, err)
	d.base.(*http.Transport).Proxy = http.ProxyURL(proxy)
	err = d.Delete(t.Context(), "eni-1", "t")
	want := `cloud unavailable: not sent: the proxy ` + proxy.Host + ` answers HTTP 403 Forbidden from "squid/5.7"`
	if err == nil || err.Error() != want || driver.Reason(err) != cloud.Between {
		t.Errorf("%v, for reason %d; want\n%s", err, driver.Reason(err), want)
	}
}

func TestACallThatNeverWentOutSaysSo(t *testing.T) {
	d := reading(t, answerPublished)
	d.base.(*faulty).refuse(1)
	err := d.Delete(t.Context(), "eni-1", "t")
	if want := "cloud unavailable: not sent: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s...", err, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the agent stops"))
	err = d.Delete(ctx, "eni-1", "t")
	if err == nil || !strings.HasSuffix(err.Error(), "cloud unavailable: not sent: the agent stops") {
		t.Errorf("error %v of an ended context", err)
	}
}

func TestThrottlingTellsHowLongToWait(t *testing.T) {
	s, c, _, i := pair(t)
	s.Endpoint.FailNext("BatchAddPrivateIp", sim.Fault{Err: &sim.Error{Reason: sim.Throttled, RetryAfter: 7 * time.Second}})
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
	s.Endpoint.FailNext("BatchAddPrivateIp", sim.Fault{Answer: sim.Lost})
	if _, err := c.AssignAddresses(t.Context(), i.ID, eni.IPv4, 1); !errors.Is(err, cloud.ErrUnknown) {
		t.Errorf("a lost answer: %v", err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	asked := false
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	d := reading(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
	})
	c := engine.New(d, quick(engine.Options{}))
	if _, err := c.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) || asked {
		t.Errorf("error %v, asked elsewhere: %v", err, asked)
	}
	if err := d.Delete(t.Context(), "eni-1", "t"); !errors.Is(err, cloud.ErrUnknown) || asked {
		t.Errorf("of a call without an answer: %v, asked elsewhere: %v", err, asked)
	}
}

// What the endpoint says, the log and a printed client may be seen by anybody.
func TestNoSecretIsInErrorsLogsOrPrints(t *testing.T) {
	withKeys(t)
	t.Setenv("BCE_SESSION_TOKEN", "0123456789session")
	var log strings.Builder
	s := newSite(t, setup{endpoint: endpoint.Options{}})
	d, err := New(Options{Endpoint: s.url, Metadata: serve(t, s.Metadata("i-n1"))})
	must(t, err)
	quicken(d)
	c := engine.New(d, quick(engine.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}))
	var texts []string
	note := func(err error) {
		if err == nil {
			t.Error("no error, want one")
			return
		}
		texts = append(texts, err.Error())
	}
	_, err = c.Interfaces(t.Context()) // its session token is not the account's
	note(err)
	leak := "your key " + accessKey + " with secret " + secretKey + " and token 0123456789session"
	s.Endpoint.FailNext("", sim.Fault{Err: &sim.Error{Reason: sim.Forbidden, Code: "AccessDenied", Status: 403, Detail: leak}})
	t.Setenv("BCE_SESSION_TOKEN", "")
	d.keys.markRefused(d.keys.now)
	_, err = c.Interfaces(t.Context())
	note(err)
	s.Endpoint.FailNext("GetInstanceDetail", sim.Fault{Rewrite: func([]byte) []byte { return []byte(`{"instance":"` + leak + `"}`) }})
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
	source := usualSource(newMetadata(meta))
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
	source = usualSource(newMetadata(serve(t, s.Metadata("i-n1"))))
	if _, err := source(t.Context()); err == nil {
		t.Error("no credentials at all are no error")
	}
}

func TestWrongKeysAreForbiddenAndSayWhatToDo(t *testing.T) {
	withKeys(t)
	s := newSite(t, setup{})
	c, _ := s.open(t, "i-n1", engine.Options{})
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
		"an instance with a slash": {Instance: "i/../x"},
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
		{Metadata: "http://169.254.169.254"}} {
		if _, err := New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestSecurityGroupsAreOfOneKind(t *testing.T) {
	for _, ids := range [][]string{{"g-1", "esg-1"}, {"sg-1"}, {""}} {
		if CheckGroups(ids) == nil {
			t.Errorf("%q are fine", ids)
		}
	}
	for _, ids := range [][]string{nil, {"g-1", "g-2"}, {"esg-1", "esg-2"}} {
		if err := CheckGroups(ids); err != nil {
			t.Errorf("%q: %v", ids, err)
		}
	}
}

// Nothing that the API can't be asked about leaves this process, and nothing that an
// ENI's description could not tell again.
func TestWhatTheAPICantBeAskedAboutIsNotAsked(t *testing.T) {
	d := reading(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s %s", r.Method, r.URL) })
	m := driver.Mark{Instance: "i-1", Token: "t", Asked: time.Now(), Index: 1}
	for name, err := range map[string]error{
		"an ENI":    d.Delete(t.Context(), "a/b", "t"),
		"a subnet":  second(d.subnetByID(t.Context(), "a/b")),
		"addresses": second(d.Assign(t.Context(), driver.Assign{On: driver.Interface{ID: ""}})),
	} {
		if !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long, blank, none := m, m, m
	long.Cluster, blank.Token, none.Index = strings.Repeat("x", 33), "a token", 0
	for _, bad := range []driver.Mark{long, blank, none} {
		if err := second(d.Create(t.Context(), driver.Create{Subnet: "sbn-1", Groups: []string{"g-1"}, Mark: bad, Token: "t"})); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("mark %+v: %v", bad, err)
		}
		if err := d.Rewrite(t.Context(), "eni-1", bad, "t"); !errors.Is(err, cloud.ErrForbidden) {
			t.Errorf("mark %+v: %v", bad, err)
		}
	}
	if err := second(d.Create(t.Context(), driver.Create{Subnet: "sbn-1", Groups: []string{"g-1", "esg-1"}, Mark: m, Token: "t"})); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("groups of both kinds: %v", err)
	}
	list, err := d.Interfaces(t.Context(), driver.Filter{IDs: []string{"a/b"}})
	if err != nil || len(list) > 0 {
		t.Errorf("an ENI with a slash is %v, %v", list, err)
	}
	if states, err := d.Alive(t.Context(), []string{"a/b"}); err != nil || len(states) > 0 {
		t.Errorf("of an instance that can't be Alive tells %v, %v", states, err)
	}
}

// second is the error of two results.
func second[T any](_ T, err error) error { return err }

func TestTheRegionsEndpointIsHTTPS(t *testing.T) {
	c, err := New(Options{Region: "gz", Instance: "i-1", VPC: "vpc-1", Zone: "zoneA", Kind: BCC})
	must(t, err)
	for bare, want := range map[bool]string{false: "https://bcc.gz.baidubce.com", true: "https://bbc.gz.baidubce.com"} {
		if got, err := c.endpoint(t.Context(), bare); err != nil || got != want {
			t.Errorf("endpoint %s, %v; want %s", got, err, want)
		}
	}
}
