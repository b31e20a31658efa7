package ec2_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

func TestOnlyKnownKeysAreAccepted(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	for name, c := range map[string]*sdk.Client{
		"another key":    w.client("AKIDNOBODY", secret, ""),
		"a wrong secret": w.client(keyID, "wrong", ""),
		"a token":        w.client(keyID, secret, "token"),
	} {
		_, err := c.DescribeVpcs(t.Context(), nil)
		if e, ok := asResponse(err); code(err) != "AuthFailure" || !ok || e.HTTPStatusCode() != 401 {
			t.Errorf("%s: %v", name, err)
		}
	}
	region := w.client(keyID, secret, "")
	_, err := region.DescribeVpcs(t.Context(), nil, func(o *sdk.Options) { o.Region = "eu-west-1" })
	w.fails(err, "AuthFailure")
	w.e.SetKeys(map[string]string{"AKIDOTHER": secret})
	_, err = w.c.DescribeVpcs(t.Context(), nil)
	w.fails(err, "AuthFailure")
	_, err = w.client("AKIDOTHER", secret, "").DescribeVpcs(t.Context(), nil)
	w.must(err)
}

// post sends a request of one's own, signed at a time, and returns what came back.
func (w *world) post(body string, at time.Time, change func(*http.Request)) (int, string) {
	w.Helper()
	r, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader(body))
	w.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w.must(v4.NewSigner().SignHTTP(w.Context(), aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret}, r, sum(body), "ec2", "us-east-1", at))
	change(r)
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	defer resp.Body.Close()
	return resp.StatusCode, read(w.T, resp.Body)
}

func TestSignaturesAreCheckedInEveryPart(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	const body = "Action=DescribeVpcs&Version=2016-11-15"
	now := time.Now()
	for _, tt := range []struct {
		name   string
		at     time.Time
		change func(*http.Request)
		code   string
	}{
		{"a good one", now, func(*http.Request) {}, ""},
		{"a clock that is slow", now.Add(-4 * time.Minute), func(*http.Request) {}, ""},
		{"a clock that is too slow", now.Add(-6 * time.Minute), func(*http.Request) {}, "RequestExpired"},
		{"a clock that is too fast", now.Add(6 * time.Minute), func(*http.Request) {}, "RequestExpired"},
		{"none", now, func(r *http.Request) { r.Header.Del("Authorization") }, "MissingAuthenticationToken"},
		{"nonsense", now, func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 what") }, "IncompleteSignature"},
		{"no date", now, func(r *http.Request) { r.Header.Del("X-Amz-Date") }, "IncompleteSignature"},
		{"another date", now, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", now.Add(time.Minute).UTC().Format("20060102T150405Z"))
		}, "AuthFailure"},
		{"another header", now, func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		}, "AuthFailure"},
		{"another query", now, func(r *http.Request) { r.URL.RawQuery = "a=b" }, "AuthFailure"},
		{"another path", now, func(r *http.Request) { r.URL.Path = "/x" }, "AuthFailure"},
		{"another body", now, func(r *http.Request) {
			r.Body, r.ContentLength = http.NoBody, 0
			r2, _ := http.NewRequest(http.MethodPost, w.url, strings.NewReader(strings.Replace(body, "Vpcs", "Tags", 1)))
			r.Body, r.ContentLength, r.GetBody = r2.Body, r2.ContentLength, nil
		}, "AuthFailure"},
	} {
		status, text := w.post(body, tt.at, tt.change)
		if tt.code == "" && status != 200 || tt.code != "" && !strings.Contains(text, "<Code>"+tt.code+"</Code>") {
			t.Errorf("%s: status %d, %s", tt.name, status, text)
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s: the answer holds the secret", tt.name)
		}
	}
}

func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	for body, want := range map[string]string{
		"Version=2016-11-15":                                   "MissingAction",
		"Action=Nothing&Version=2016-11-15":                    "InvalidAction",
		"Action=DescribeVpcs&Version=2010-01-01":               "InvalidAction",
		"Action=DescribeVpcs&Version=2016-11-15&Colour=red":    "UnknownParameter",
		"Action=DescribeVpcs&Version=2016-11-15&MaxResults=no": "InvalidParameterValue",
		"Action=DescribeVpcs&Version=2016-11-15&DryRun=maybe":  "InvalidParameterValue",
		"Action=%zz": "MalformedQueryString",
		"Action=DescribeVpcs&Version=2016-11-15&Filter.1.Name=vpc-id": "InvalidParameterValue",
		"Action=DeleteNetworkInterface&Version=2016-11-15":            "MissingParameter",
	} {
		if _, text := w.post(body, time.Now(), func(*http.Request) {}); !strings.Contains(text, "<Code>"+want+"</Code>") {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
	}
}

func TestARequestCanBeAGet(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	q := url.Values{"Action": {"DescribeSubnets"}, "Version": {"2016-11-15"}, "Filter.1.Name": {"tag:pool"}, "Filter.1.Value.1": {"0a b*~"}}
	r, err := http.NewRequest(http.MethodGet, w.url+"/?"+strings.ReplaceAll(q.Encode(), "+", "%20"), nil)
	w.must(err)
	w.must(v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: keyID, SecretAccessKey: secret}, r, sum(""), "ec2", "us-east-1", time.Now()))
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	defer resp.Body.Close()
	if text := read(t, resp.Body); resp.StatusCode != 200 || !strings.Contains(text, "<subnetSet></subnetSet>") {
		t.Errorf("status %d: %s", resp.StatusCode, text)
	}
}

func TestActionsThatAreNotAllowedAreRefused(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{Allowed: []string{"ec2:Describe*", "DeleteNetworkInterface"}})
	w.ids()
	_, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA)})
	if e, ok := asResponse(err); code(err) != "UnauthorizedOperation" || !ok || e.HTTPStatusCode() != 403 || len(w.ids()) != 2 {
		t.Errorf("error %v, ENIs %v", err, w.ids())
	}
	w.e.Allow(nil)
	w.create(0)
	w.e.Allow([]string{})
	_, err = w.c.DescribeVpcs(t.Context(), nil)
	w.fails(err, "UnauthorizedOperation")
}

func TestADryRunTellsWhatWouldBe(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	ctx, yes := t.Context(), aws.Bool(true)
	id := *w.create(1).NetworkInterfaceId
	at := w.attach(id, 1)
	for name, call := range map[string]func() error{
		"DescribeInstances": func() error {
			_, err := w.c.DescribeInstances(ctx, &sdk.DescribeInstancesInput{DryRun: yes})
			return err
		},
		"DescribeNetworkInterfaces": func() error {
			_, err := w.c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{DryRun: yes})
			return err
		},
		"CreateNetworkInterface": func() error {
			_, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{DryRun: yes, SubnetId: aws.String(subnetA)})
			return err
		},
		"DetachNetworkInterface": func() error {
			_, err := w.c.DetachNetworkInterface(ctx, &sdk.DetachNetworkInterfaceInput{DryRun: yes, AttachmentId: &at})
			return err
		},
		"DeleteNetworkInterface": func() error {
			_, err := w.c.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{DryRun: yes, NetworkInterfaceId: &id})
			return err
		},
	} {
		w.e.Allow(nil)
		err := call()
		if e, ok := asResponse(err); code(err) != "DryRunOperation" || !ok || e.HTTPStatusCode() != 412 {
			t.Errorf("%s: %v", name, err)
		}
		w.e.Allow([]string{})
		w.fails(call(), "UnauthorizedOperation")
	}
	w.e.Allow(nil)
	if got := w.ids(); len(got) != 3 {
		t.Errorf("a dry run did something: %v", got)
	}
	// The API has no dry run of these, other clients than the SDK may try.
	for _, body := range []string{"Action=AssignPrivateIpAddresses&SecondaryPrivateIpAddressCount=1&NetworkInterfaceId=" + id,
		"Action=UnassignPrivateIpAddresses&PrivateIpAddress.1=10.0.0.1&NetworkInterfaceId=" + id} {
		if _, text := w.post(body+"&Version=2016-11-15&DryRun=true", time.Now(), func(*http.Request) {}); !strings.Contains(text, "<Code>DryRunOperation</Code>") {
			t.Errorf("%s: %s", body, text)
		}
	}
}

func TestCredentialsOfTheRoleAreGoodUntilTheyEnd(t *testing.T) {
	clock := &handClock{now: time.Now()}
	w := newWorld(t, sim.Options{Clock: clock}, ec2.Options{Role: "node", RoleTTL: time.Hour})
	server := httptest.NewServer(w.e.Metadata(instance))
	defer server.Close()
	provider := ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = imds.New(imds.Options{Endpoint: server.URL}) })
	fetch := func() aws.Credentials {
		c, err := provider.Retrieve(context.Background())
		w.must(err)
		return c
	}
	// The SDK signs by its own clock, so time passes for the endpoint alone, and less
	// than the skew that is allowed.
	one := fetch()
	if again := fetch(); again != one {
		t.Error("two sets of credentials at one time")
	}
	_, err := w.client(one.AccessKeyID, one.SecretAccessKey, one.SessionToken).DescribeVpcs(t.Context(), nil)
	w.must(err)
	_, err = w.client(one.AccessKeyID, one.SecretAccessKey, "").DescribeVpcs(t.Context(), nil)
	w.fails(err, "AuthFailure")
	clock.advance(58 * time.Minute)
	two := fetch()
	if two.AccessKeyID == one.AccessKeyID || !two.Expires.After(one.Expires) {
		t.Errorf("shortly before their end they are still the same: %v, %v", one.Expires, two.Expires)
	}
	at := clock.Now()
	for name, tt := range map[string]struct {
		c    aws.Credentials
		pass time.Duration
		code string
	}{"the old ones before their end": {one, 0, ""}, "the old ones": {one, 3 * time.Minute, "RequestExpired"}, "the new ones": {two, 3 * time.Minute, ""}} {
		clock.mu.Lock()
		clock.now = at.Add(tt.pass)
		clock.mu.Unlock()
		if got := w.signed(tt.c, clock.Now()); tt.code == "" && !strings.Contains(got, "vpcSet") || !strings.Contains(got, tt.code) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// signed describes the VPC with a signature of a time.
func (w *world) signed(c aws.Credentials, at time.Time) string {
	w.Helper()
	const body = "Action=DescribeVpcs&Version=2016-11-15"
	r, err := http.NewRequest(http.MethodPost, w.url, strings.NewReader(body))
	w.must(err)
	w.must(v4.NewSigner().SignHTTP(w.Context(), c, r, sum(body), "ec2", "us-east-1", at))
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	defer resp.Body.Close()
	return read(w.T, resp.Body)
}
