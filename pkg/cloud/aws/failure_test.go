package aws

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim/api"
	"github.com/enipool/enipool/pkg/cloud/sim/api/ec2"
	"github.com/enipool/enipool/pkg/eni"
)

func TestAnErrorsKindIsThatOfItsCode(t *testing.T) {
	for _, tt := range []struct {
		code, message string
		status        int
		kind          error // of a change; of a read too where it is not ErrUnknown
	}{
		{"RequestLimitExceeded", "Request limit exceeded.", 503, cloud.ErrThrottled},
		{"Throttling", "Rate exceeded", 400, cloud.ErrThrottled},
		{"Client.RequestLimitExceeded", "", 503, cloud.ErrThrottled},
		{"SomethingNew", "slow down", 429, cloud.ErrThrottled},
		{"InsufficientFreeAddressesInSubnet", "", 400, cloud.ErrSubnetFull},
		{"InsufficientCidrBlocks", "", 400, cloud.ErrSubnetFull},
		{"InvalidParameterValue", "There aren't sufficient free Ipv4 addresses or prefixes", 400, cloud.ErrSubnetFull},
		{"InvalidParameterValue", "anything else", 400, cloud.ErrForbidden},
		{"PrivateIpAddressLimitExceeded", "", 400, cloud.ErrLimit},
		{"AttachmentLimitExceeded", "", 400, cloud.ErrLimit},
		{"NetworkInterfaceLimitExceeded", "", 400, cloud.ErrLimit},
		{"Ipv6AddressLimitExceeded", "", 400, cloud.ErrLimit},
		{"InvalidNetworkInterfaceID.NotFound", "", 400, cloud.ErrNotFound},
		{"InvalidNetworkInterfaceId.Malformed", "", 400, cloud.ErrNotFound},
		{"InvalidSubnetID.NotFound", "", 400, cloud.ErrNotFound},
		{"InvalidSubnetId.Malformed", "", 400, cloud.ErrNotFound},
		{"InvalidInstanceID.NotFound", "", 400, cloud.ErrNotFound},
		{"InvalidAttachmentID.NotFound", "", 400, cloud.ErrNotFound},
		{"InvalidGroup.NotFound", "", 400, cloud.ErrForbidden},
		{"UnauthorizedOperation", "", 403, cloud.ErrForbidden},
		{"AuthFailure", "", 401, cloud.ErrForbidden},
		{"RequestExpired", "", 400, cloud.ErrForbidden},
		{"OptInRequired", "", 401, cloud.ErrForbidden},
		{"IncorrectState", "", 400, cloud.ErrUnavailable},
		{"InvalidNetworkInterface.InUse", "", 400, cloud.ErrUnavailable},
		{"InternalError", "", 500, cloud.ErrUnknown},
		{"ServiceUnavailable", "", 503, cloud.ErrUnknown},
		{"Unavailable", "", 503, cloud.ErrUnknown},
	} {
		c, ec2 := newCanned(t, Options{})
		fails := func(url.Values) (int, string) { return tt.status, refusal(tt.code, tt.message) }
		ec2.says("DescribeInstances", instanceXML)
		ec2.says("DescribeInstanceTypes", typeXML)
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10")))
		ec2.answers["AssignIpv6Addresses"] = fails
		c.limits = eni.Limits{ENIs: 3, V4: 9, V6: 9}
		got, err := c.AssignAddresses(t.Context(), "eni-1", eni.IPv6, 1)
		if k := cloud.Kind(err); len(got) > 0 || k != tt.kind {
			t.Errorf("%s of a change is %v: %v", tt.code, k, err)
		}
		if n := ec2.count("AssignIpv6Addresses"); n != 1 {
			t.Errorf("%s: the change was tried %d times", tt.code, n)
		}
		want := tt.kind
		if want == cloud.ErrUnknown {
			want = cloud.ErrUnavailable
		}
		ec2.answers["DescribeNetworkInterfaces"] = fails
		if _, err = c.Interfaces(t.Context()); cloud.Kind(err) != want {
			t.Errorf("%s of a read is %v: %v", tt.code, cloud.Kind(err), err)
		}
		var e *cloud.Error
		if errors.As(err, &e) && (e.Op != "Interfaces" || !strings.HasPrefix(e.Detail, tt.code)) {
			t.Errorf("%s is told as %v", tt.code, err)
		}
	}
}

func TestReadsAreRepeatedAndChangesAreNot(t *testing.T) {
	c, ec2 := newCanned(t, Options{})
	ec2.answers["DescribeNetworkInterfaces"] = func(url.Values) (int, string) { return 500, refusal("InternalError", "") }
	if _, err := c.Interfaces(t.Context()); !errors.Is(err, cloud.ErrUnavailable) || ec2.count("DescribeNetworkInterfaces") != readTries {
		t.Errorf("%v after %d tries", err, ec2.count("DescribeNetworkInterfaces"))
	}
}

// secretsOf fails the test if a text has a credential in it.
func secretsOf(t *testing.T, what, text string) {
	t.Helper()
	for _, secret := range []string{testKey, testSecret, testToken, url.QueryEscape(testSecret), "Signature="} {
		if strings.Contains(text, secret) {
			t.Errorf("%s tells a credential: %s", what, strings.ReplaceAll(text, secret, "[HERE]"))
		}
	}
}

// EC2 may answer with what it was asked with, and so may what stands in between.
func TestNoErrorAndNoLogTellsACredential(t *testing.T) {
	echo := fmt.Sprintf("The request signed by %s with %s and %s: AWS4-HMAC-SHA256 Credential=%s/20260101, Signature=%s is wrong. Encoded authorization failure message: %s",
		testKey, testSecret, testToken, testKey, strings.Repeat("ab", 32), strings.Repeat("Xy9", 300))
	var log bytes.Buffer
	for _, body := range []string{refusal("SignatureDoesNotMatch", echo), refusal(testSecret, ""), echo, enisXML(eniXML(testToken+" x", 0, testSecret))} {
		for _, status := range []int{200, 400, 403, 500} {
			c, ec2 := newCanned(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Cluster: "c"})
			answer := func(url.Values) (int, string) { return status, body }
			for _, action := range []string{"DescribeInstances", "DescribeInstanceTypes", "DescribeNetworkInterfaces", "DescribeSubnets",
				"AssignPrivateIpAddresses", "UnassignPrivateIpAddresses", "CreateNetworkInterface", "DeleteNetworkInterface"} {
				ec2.answers[action] = answer
			}
			_, err1 := c.Limits(t.Context())
			_, err2 := c.Interfaces(t.Context())
			_, err3 := c.Subnets(t.Context())
			_, err4 := c.CreateInterface(t.Context(), cloud.Create{Token: "t", Subnet: "s", V4: 1})
			_, err5 := c.Sweep(t.Context(), 0)
			ec2.says("DescribeSubnets", subnetXML)
			ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10")))
			c.limits = eni.Limits{ENIs: 3, V4: 9}
			_, err6 := c.AssignAddresses(t.Context(), "eni-1", eni.IPv4, 1)
			err7 := c.UnassignAddresses(t.Context(), "eni-1", addrs("10.0.0.100"))
			for _, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
				if err != nil {
					secretsOf(t, "an error", err.Error())
					secretsOf(t, "an error", fmt.Sprintf("%+v %#v", err, err))
				}
			}
			for _, q := range c.Quarantined() {
				secretsOf(t, "what is left out", fmt.Sprintf("%+v", q))
			}
		}
	}
	secretsOf(t, "the log", log.String())
}

func TestCredentialsThatAreMissingOrWrongAreForbidden(t *testing.T) {
	s := newSite(t, kind{endpoint: ec2.Options{Keys: map[string]string{"AKIDOTHER": "other"}}})
	c, _ := s.open(t, "i-1", Options{})
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	_, err := c.Interfaces(t.Context())
	if !errors.Is(err, cloud.ErrForbidden) || !strings.Contains(err.Error(), "AuthFailure") {
		t.Errorf("wrong credentials: %v", err)
	}
	secretsOf(t, "the error", err.Error())
	bare(t)
	lonely := New(Options{Instance: "i-1", Region: "eu-test-1", Endpoint: s.url, Metadata: serve(t, http.NotFoundHandler())})
	quicken(lonely)
	if _, err := lonely.Interfaces(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("no credentials: %v", err)
	}
}

func TestOnlyTheOptionsSayWhereEC2Is(t *testing.T) {
	for text, good := range map[string]bool{
		"https://ec2.example.org": true, "https://ec2.example.org:8443/": true, "http://127.0.0.1:5000": true, "http://localhost:5000": true,
		"http://[::1]:5000": true, "http://169.254.169.254": true, "http://[fd00:ec2::254]": true, "http://[fe80::1]": true,
		"http://ec2.example.org": false, "http://10.0.0.1": false, "ec2.example.org": false, "ftp://127.0.0.1": false, "": false,
		"https://user:word@ec2.example.org": false, "https://ec2.example.org?x=1": false, "unix:///run/x": false, "http://localhost.example.org": false,
	} {
		if err := ValidEndpoint(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		} else if err != nil {
			secretsOf(t, text, err.Error())
			if strings.Contains(err.Error(), "word") {
				t.Errorf("%q is told: %v", text, err)
			}
		}
	}
	bare(t)
	c := New(Options{Endpoint: "http://10.0.0.1"})
	if _, err := c.Limits(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("an endpoint far away without TLS: %v", err)
	}
	// The whole contract ran with AWS_ENDPOINT_URL and its kin set to nobody.
	s := newSite(t, kind{})
	c, _ = s.open(t, "i-1", Options{})
	s.Endpoint.FailNext("DescribeInstanceTypes", api.Fault{})
	_, err := c.Limits(t.Context())
	must(t, err)
	if *c.session.api.options.BaseEndpoint != s.url {
		t.Errorf("EC2 is asked at %s", *c.session.api.options.BaseEndpoint)
	}
	c = New(Options{Instance: "i-1", Region: "eu-test-1"})
	session, err := c.connect(t.Context())
	must(t, err)
	if got := session.api.options.BaseEndpoint; got != nil {
		t.Errorf("without an endpoint EC2 is asked at %s", *got)
	}
}
