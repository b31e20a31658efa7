package bce

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	sdkauth "github.com/baidubce/bce-sdk-go/auth"
	sdk "github.com/baidubce/bce-sdk-go/services/eni"
	"github.com/baidubce/bce-sdk-go/services/vpc"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newAccount makes an account with a subnet and an instance.
func newAccount(t testing.TB, o sim.Options) *sim.Account {
	t.Helper()
	o.Region, o.NewID = "bj", NewID
	a := sim.NewAccount(o)
	a.AddGroup(sim.Group{ID: "g-1", Name: "nodes"})
	a.AddGroup(sim.Group{ID: "esg-1", Name: "enterprise", Enterprise: true})
	a.AddType(Types()...)
	must(t, a.AddSubnet(sim.Subnet{ID: "sbn-a", V4: netip.MustParsePrefix("10.0.0.0/24"),
		V6: netip.MustParsePrefix("2001:db8::/64"), Zone: "cn-bj-d", Reserve: Reserve}))
	_, err := a.AddInstance(sim.Instance{ID: "i-1", Type: "bcc.g5.c2m8", Subnet: "sbn-a", Groups: []string{"g-1"}})
	must(t, err)
	return a
}

// open makes an endpoint without keys.
func open(t testing.TB, o Options) (*sim.Account, *Endpoint, string) {
	t.Helper()
	a := newAccount(t, sim.Options{})
	e := New(a, o)
	s := httptest.NewServer(e.Handler())
	t.Cleanup(s.Close)
	return a, e, s.URL
}

// do makes a call without the SDK.
func do(t testing.TB, method, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	must(t, err)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(text)
}

const asked = `{"name":"n","subnetId":"sbn-a","securityGroupIds":["g-1"],"privateIpSet":[{"primary":true,"privateIpAddress":""}]}`

// create makes an ENI and returns its id.
func create(t testing.TB, url, token string) string {
	t.Helper()
	status, answer := do(t, "POST", url+"/v1/eni?clientToken="+token, asked)
	var a struct{ EniID string }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != http.StatusOK || a.EniID == "" {
		t.Fatalf("create: %d %s", status, answer)
	}
	return a.EniID
}

func TestTheSDKsSignaturesAreAcceptedAndNoOthers(t *testing.T) {
	a := newAccount(t, sim.Options{})
	e := New(a, Options{Keys: map[string]string{"key": "secret"}})
	s := httptest.NewServer(e.Handler())
	t.Cleanup(s.Close)
	call := func(ak, sk string, change func(*sdk.Client)) error {
		c, err := sdk.NewClient(ak, sk, s.URL)
		must(t, err)
		copied := *c.Config // the SDK's defaults are shared
		options := *copied.SignOption
		copied.SignOption, c.Config = &options, &copied
		if change != nil {
			change(c)
		}
		_, err = c.ListEni(&sdk.ListEniArgs{VpcId: vpcOf(a), Name: "a b/ü+&=%"})
		return err
	}
	must(t, call("key", "secret", nil))
	must(t, call("key", "secret", func(c *sdk.Client) {
		c.Config.SignOption.HeadersToSign = map[string]struct{}{"host": {}}
	}))
	for name, tt := range map[string]struct {
		ak, sk string
		change func(*sdk.Client)
		want   string
	}{
		"a wrong secret": {"key", "other", nil, "SignatureDoesNotMatch"},
		"an unknown key": {"other", "secret", nil, "InvalidAccessKeyId"},
		"an old signature": {"key", "secret", func(c *sdk.Client) {
			c.Config.SignOption.Timestamp = time.Now().Add(-time.Hour).Unix()
		}, "RequestExpired"},
		"one of the future": {"key", "secret", func(c *sdk.Client) {
			c.Config.SignOption.Timestamp = time.Now().Add(time.Hour).Unix()
		}, "RequestExpired"},
		"a token that nobody gave": {"key", "secret", func(c *sdk.Client) {
			c.Config.Credentials = &sdkauth.BceCredentials{AccessKeyId: "key", SecretAccessKey: "secret", SessionToken: "x"}
		}, "SignatureDoesNotMatch"},
	} {
		if err := call(tt.ak, tt.sk, tt.change); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	for auth, want := range map[string]string{"": "AccessDenied", "Basic x": "InvalidHTTPAuthHeader", "bce-auth-v1/key/now/1//x": "InvalidHTTPAuthHeader"} {
		r, err := http.NewRequest("GET", s.URL+"/v1/eni?vpcId=x", nil)
		must(t, err)
		r.Header.Set("Authorization", auth)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		if !strings.Contains(string(text), want) {
			t.Errorf("authorization %q: %s", auth, text)
		}
	}
}

func TestASignatureIsOfItsRequest(t *testing.T) {
	e := New(newAccount(t, sim.Options{}), Options{Keys: map[string]string{"key": "secret"}})
	r := httptest.NewRequest("PUT", "http://host/v1/eni/eni-1?attach&clientToken=t", strings.NewReader("{}"))
	prefix := "bce-auth-v1/key/" + time.Now().UTC().Format("2006-01-02T15:04:05Z") + "/60"
	a, ok := parseAuthorization(prefix + "/host/x")
	if !ok {
		t.Fatal("the authorization is unreadable")
	}
	sign := func(r *http.Request) { r.Header.Set("Authorization", prefix+"/host/"+signature(r, a, "secret")) }
	sign(r)
	must(t, e.authenticate(r))
	for name, change := range map[string]func(*http.Request){
		"the method": func(r *http.Request) { r.Method = "POST" },
		"the path":   func(r *http.Request) { r.URL.Path = "/v1/eni/eni-2" },
		"the query":  func(r *http.Request) { r.URL.RawQuery = "detach&clientToken=t" },
		"the host":   func(r *http.Request) { r.Host = "other" },
	} {
		other := r.Clone(t.Context())
		change(other)
		if e.authenticate(other) == nil {
			t.Errorf("%s is changed and the signature still good", name)
		}
	}
}

func TestAClientTokenMakesOneENI(t *testing.T) {
	_, _, url := open(t, Options{})
	first, again, other := create(t, url, "t"), create(t, url, "t"), create(t, url, "u")
	if first != again || first == other {
		t.Errorf("tokens t, t, u made %s, %s, %s", first, again, other)
	}
	status, answer := do(t, "POST", url+"/v1/eni?clientToken=t", strings.Replace(asked, `"n"`, `"m"`, 1))
	if status != http.StatusForbidden || !strings.Contains(answer, "IdempotentParameterMismatch") {
		t.Errorf("the token with another body: %d %s", status, answer)
	}
	if status, answer := do(t, "POST", url+"/v1/eni?clientToken="+strings.Repeat("x", 65), asked); status != http.StatusBadRequest {
		t.Errorf("a token of 65: %d %s", status, answer)
	}
	a, _, url := open(t, Options{NoTokens: true})
	if first, again := create(t, url, "t"), create(t, url, "t"); first == again {
		t.Error("tokens count where they should not")
	}
	must(t, a.Check())
}

func TestAnENIGoesThroughItsStates(t *testing.T) {
	a, _, url := open(t, Options{})
	a.SetTimes(0, time.Hour, time.Hour)
	id := create(t, url, "")
	state := func(want string) {
		t.Helper()
		if _, answer := do(t, "GET", url+"/v1/eni/"+id+"/status", ""); answer != fmt.Sprintf(`{"status":%q}`, want) {
			t.Errorf("status %s, want %s", answer, want)
		}
	}
	refused := func(method, path, body string) {
		t.Helper()
		if status, answer := do(t, method, url+path, body); status != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", method, path, status, answer)
		}
	}
	state("available")
	refused("PUT", "/v1/eni/"+id+"?detach", `{"instanceId":"i-1"}`)
	if status, answer := do(t, "PUT", url+"/v1/eni/"+id+"?attach", `{"instanceId":"i-1"}`); status != http.StatusOK || answer != "" {
		t.Errorf("attach: %d %s", status, answer)
	}
	state("attaching")
	refused("DELETE", "/v1/eni/"+id, "")
	refused("PUT", "/v1/eni/"+id+"?attach", `{"instanceId":"i-1"}`)
	must(t, a.Detach(id))
	a.SetTimes(0, 0, time.Hour)
	do(t, "PUT", url+"/v1/eni/"+id+"?attach", `{"instanceId":"i-1"}`)
	state("inuse")
	do(t, "PUT", url+"/v1/eni/"+id+"?detach", `{"instanceId":"i-1"}`)
	state("detaching")
	must(t, a.Check())
}

func TestListsComeInPages(t *testing.T) {
	a, _, url := open(t, Options{})
	var want []string
	for range 5 {
		want = append(want, create(t, url, ""))
	}
	var got []string
	for marker := ""; ; {
		var page sdk.ListEniResult
		_, answer := do(t, "GET", url+"/v1/eni?maxKeys=2&vpcId="+vpcOf(a)+"&marker="+marker, "")
		must(t, json.Unmarshal([]byte(answer), &page))
		for _, e := range page.Eni {
			got = append(got, e.EniId)
		}
		if marker = page.NextMarker; !page.IsTruncated {
			break
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("pages have %v, want %v", got, want)
	}
	for _, query := range []string{"maxKeys=2", "vpcId=v&maxKeys=0", "vpcId=v&maxKeys=1001", "vpcId=" + vpcOf(a) + "&marker=eni-gone"} {
		if status, answer := do(t, "GET", url+"/v1/eni?"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
	var subnets vpc.ListSubnetResult
	_, answer := do(t, "GET", url+"/v1/subnet?vpcId="+vpcOf(a), "")
	must(t, json.Unmarshal([]byte(answer), &subnets))
	if len(subnets.Subnets) != 1 || subnets.Subnets[0].AvailableIp != 256-3-6 || subnets.IsTruncated {
		t.Errorf("subnets are %s", answer)
	}
}

func TestACallTakesTenAddressesAndAnENIWhatItsInstanceAllows(t *testing.T) {
	_, _, url := open(t, Options{})
	id := create(t, url, "")
	do(t, "PUT", url+"/v1/eni/"+id+"?attach", `{"instanceId":"i-1"}`)
	for _, tt := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{"POST", "/privateIp/batchAdd", `{"privateIpAddressCount":11}`, 400, "BadRequest"},
		{"POST", "/privateIp/batchAdd", `{}`, 400, "BadRequest"},
		{"POST", "/privateIp/batchAdd", `{"privateIpAddressCount":8}`, 400, "VmMemoryCanNotAttachMoreIpException"},
		{"POST", "/privateIp/batchAdd", `{"privateIpAddresses":["10.0.0.9","10.0.0.10"]}`, 200, `["10.0.0.9","10.0.0.10"]`},
		{"POST", "/privateIp/batchAdd", `{"privateIpAddresses":["10.0.0.2"]}`, 400, "PrivateIpInUseException"},
		{"POST", "/privateIp/batchAdd", `{"privateIpAddresses":["10.1.0.2"]}`, 400, "BadRequest"},
		{"POST", "/privateIp/batchAdd", `{"isIpv6":true,"privateIpAddressCount":2}`, 200, "2001:db8::"},
		{"POST", "/privateIp/batchAdd", `{`, 400, "MalformedJSON"},
		{"POST", "/privateIp", `{"privateIpAddress":""}`, 200, `{"privateIpAddress":"10.0.0.`},
		{"POST", "/privateIp", `{"privateIpAddress":"10.0.0.20"}`, 200, `{"privateIpAddress":"10.0.0.20"}`},
		{"DELETE", "/privateIp/10.0.0.20", ``, 200, ""},
		{"DELETE", "/privateIp/10.0.0.20", ``, 400, "PrivateIPNotExistException"},
		{"POST", "/privateIp/batchDel", `{"privateIpAddresses":["10.0.0.9","10.0.0.99"]}`, 400, "PrivateIPNotExistException"},
		{"POST", "/privateIp/batchDel", `{"privateIpAddresses":["10.0.0.3"]}`, 400, "BadRequest"}, // the primary
		{"POST", "/privateIp/batchDel", `{"privateIpAddresses":["10.0.0.9","10.0.0.10"]}`, 200, ""},
		{"GET", "", ``, 200, `"status":"inuse"`},
	} {
		status, answer := do(t, tt.method, url+"/v1/eni/"+id+tt.path, tt.body)
		if status != tt.status || !strings.Contains(answer, tt.has) {
			t.Errorf("%s %s %s: %d %s, want %d with %s", tt.method, tt.path, tt.body, status, answer, tt.status, tt.has)
		}
	}
	for query, want := range map[string]string{
		"eniId=" + id: `{"totalQuantity":8,"availableQuantity":6}`, "instanceId=i-1": `{"totalQuantity":2,"availableQuantity":1}`,
	} {
		if _, answer := do(t, "GET", url+"/v1/eni/quota?"+query, ""); answer != want {
			t.Errorf("quota of %s: %s, want %s", query, answer, want)
		}
	}
}

func TestWrongCreationsAreRefused(t *testing.T) {
	_, _, url := open(t, Options{})
	for name, body := range map[string]string{
		"no name":            strings.Replace(asked, `"n"`, `""`, 1),
		"a name of digits":   strings.Replace(asked, `"n"`, `"1"`, 1),
		"no address":         `{"name":"n","subnetId":"sbn-a","securityGroupIds":["g-1"],"privateIpSet":[]}`,
		"no primary":         strings.Replace(asked, `true`, `false`, 1),
		"no security group":  strings.Replace(asked, `["g-1"]`, `[]`, 1),
		"groups of two":      strings.Replace(asked, `"subnetId"`, `"enterpriseSecurityGroupIds":["esg-1"],"subnetId"`, 1),
		"a long description": strings.Replace(asked, `"name"`, `"description":"`+strings.Repeat("x", 201)+`","name"`, 1),
		"a primary of IPv6":  strings.Replace(asked, `"name"`, `"ipv6PrivateIpSet":[{"primary":true}],"name"`, 1),
	} {
		if status, answer := do(t, "POST", url+"/v1/eni", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if status, answer := do(t, "POST", url+"/v1/eni", strings.Replace(asked, "sbn-a", "sbn-x", 1)); status != http.StatusNotFound {
		t.Errorf("no such subnet: %d %s", status, answer)
	}
	if status, answer := do(t, "GET", url+"/v1/nothing", ""); status != http.StatusBadRequest || !strings.Contains(answer, "InvalidURI") {
		t.Errorf("no such path: %d %s", status, answer)
	}
}

func TestTheInstanceHasItsOwnENIAndTheServiceForENIsDoesNotKnowIt(t *testing.T) {
	a, _, url := open(t, Options{})
	_, answer := do(t, "GET", url+"/v2/instance/i-1?isDeploySet=false", "")
	var detail struct {
		Instance struct {
			ENIQuota int
			NicInfo  struct {
				EniID string
				IPs   []struct{ PrivateIP, Primary string }
			}
		}
	}
	must(t, json.Unmarshal([]byte(answer), &detail))
	nic := detail.Instance.NicInfo
	if detail.Instance.ENIQuota != 2 || nic.EniID == "" || len(nic.IPs) != 1 || nic.IPs[0].Primary != "true" {
		t.Fatalf("the instance is %s", answer)
	}
	if status, answer := do(t, "GET", url+"/v1/eni/"+nic.EniID, ""); status != http.StatusBadRequest || !strings.Contains(answer, "EniIdException") {
		t.Errorf("its ENI: %d %s", status, answer)
	}
	if status, answer := do(t, "PUT", url+"/v2/instance/batchAddIp", `{"instanceId":"i-1","secondaryPrivateIpAddressCount":2}`); status != http.StatusForbidden || !strings.Contains(answer, "rebooted") {
		t.Errorf("two addresses of a virtual machine: %d %s", status, answer)
	}
	if _, err := a.AddInstance(sim.Instance{ID: "i-2", Type: "ebc.l5", Subnet: "sbn-a", Groups: []string{"g-1"}}); err != nil {
		t.Fatal(err)
	}
	if status, answer := do(t, "PUT", url+"/v2/instance/batchAddIp", `{"instanceId":"i-2","secondaryPrivateIpAddressCount":2}`); status != http.StatusOK {
		t.Errorf("two addresses of bare metal: %d %s", status, answer)
	}
	if status, answer := do(t, "PUT", url+"/v1/instance/batchAddIp", `{"instanceId":"i-1","secondaryPrivateIpAddressCount":2}`); status != http.StatusNotFound {
		t.Errorf("by the service for bare metal: %d %s", status, answer)
	}
	must(t, a.Check())
}

func TestMetadataTellsAnInstanceAboutItself(t *testing.T) {
	a, e, _ := open(t, Options{Role: true})
	s := httptest.NewServer(e.Metadata("i-1"))
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"instance-shortid": "i-1", "instance-type-ex": "bcc", "region": "bj", "azone": "zoneD", "vpc-id": vpcOf(a), "subnet-id": "sbn-a",
		"local-ipv4": "10.0.0.2", "unheard": "",
	} {
		if status, answer := do(t, "GET", s.URL+"/1.0/meta-data/"+path, ""); status != http.StatusOK || answer != want {
			t.Errorf("%s: %d %q, want %q", path, status, answer, want)
		}
	}
	_, first := do(t, "GET", s.URL+"/latest/meta-data/sts-credential", "")
	_, again := do(t, "GET", s.URL+"/latest/meta-data/sts-credential", "")
	if !strings.Contains(first, "sessionToken") || first != again {
		t.Error("the role's credentials change at each look, or are none")
	}
	_, e, _ = open(t, Options{})
	other := httptest.NewServer(e.Metadata("i-1"))
	t.Cleanup(other.Close)
	if status, _ := do(t, "GET", other.URL+"/latest/meta-data/sts-credential", ""); status != http.StatusNotFound {
		t.Errorf("without a role: %d", status)
	}
}

func TestFaultsReachTheCaller(t *testing.T) {
	_, e, url := open(t, Options{Denied: []string{"GetEniQuota"}})
	e.FailNext("ListEni", sim.Fault{Err: &sim.Error{Reason: sim.Throttled, RetryAfter: 1500 * time.Millisecond}})
	r, err := http.Get(url + "/v1/eni?vpcId=v")
	must(t, err)
	must(t, r.Body.Close())
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "2" {
		t.Errorf("throttled: %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if status, answer := do(t, "GET", url+"/v1/eni/quota?instanceId=i-1", ""); status != http.StatusForbidden || !strings.Contains(answer, "AccessDenied") {
		t.Errorf("denied: %d %s", status, answer)
	}
	if id := create(t, url, ""); !strings.HasPrefix(id, "eni-") {
		t.Errorf("the ENI is %s", id)
	}
}

func FuzzHandlerSurvives(f *testing.F) {
	f.Add("POST", "/v1/eni?clientToken=t", []byte(asked))
	f.Add("PUT", "/v1/eni/eni-1?attach", []byte(`{"instanceId":"i-1"}`))
	f.Add("GET", "/v1/eni?vpcId=v&marker=x&maxKeys=7", []byte{})
	f.Add("PUT", "/v2/instance/batchAddIp", []byte(`{"instanceId":"i-1","secondaryPrivateIpAddressCount":-1}`))
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		a := newAccount(t, sim.Options{})
		r, err := http.NewRequest(method, "http://host"+path, bytes.NewReader(body))
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		New(a, Options{}).Handler().ServeHTTP(httptest.NewRecorder(), r)
		must(t, a.Check())
	})
}

func vpcOf(a *sim.Account) (id string) {
	a.View(0, func(tx *sim.Tx) { id = tx.VPC().ID })
	return id
}
