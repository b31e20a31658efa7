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
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/test/fakecloud/ec2"
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
		c, ec2 := newCanned(t, engine.Options{IPv6: true})
		fails := func(url.Values) (int, string) { return tt.status, refusal(tt.code, tt.message) }
		ec2.says("DescribeInstances", instanceXML)
		ec2.says("DescribeInstanceTypes", typeXML)
		ec2.says("DescribeSubnets", subnetXML)
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10", "<tagSet>", "<ipv6AddressesSet><item><ipv6Address>2001:db8::5</ipv6Address></item></ipv6AddressesSet><tagSet>")))
		ec2.answers["AssignIpv6Addresses"] = fails
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

// What EC2 writes, as people have reported it, and what it means with each call.
func TestWhatATextDecidesIsDecidedByTheTextsOfEC2(t *testing.T) {
	const other, full, index, inUse, busy, noAddress, noBlock, taken = cloud.Other, cloud.Other, cloud.IndexTaken, cloud.InUse, cloud.Busy, cloud.NoSuchAddress, cloud.NoWholeBlock, cloud.AddressTaken
	for _, tt := range []struct {
		from, code, message            string
		kind                           error
		attach, detach, unbind, remove cloud.Why // of an attachment, a detachment, an unassignment, a deletion
	}{
		{"github.com/lstoll/k8s-vpcnet/issues/71", "InvalidParameterValue", "Instance 'i-057f199b55b2543ea' already has an interface attached at device index '1'.", cloud.ErrForbidden, index, other, noAddress, busy},
		{"github.com/hashicorp/terraform-provider-aws/pull/906", "InvalidParameterValue", "Instance 'i-0372136987572ce5f' already has an interface attached at device index '2'.", cloud.ErrForbidden, index, other, noAddress, busy},
		{"CloudTrail's form", "Client.InvalidParameterValue", "Instance 'i-0372136987572ce5f' already has an interface attached at device index '2'.", cloud.ErrForbidden, index, other, noAddress, busy},
		{"github.com/hashicorp/terraform-provider-aws/issues/27513", "InvalidNetworkInterface.InUse", "Interface: [eni-0b02b09699ec55970] in use.", cloud.ErrUnavailable, inUse, busy, busy, busy},
		{"github.com/gruntwork-io/cloud-nuke/issues/431", "InvalidParameterValue", "Network interface 'eni-021048978ddd45189' is currently in use.", cloud.ErrUnavailable, inUse, busy, busy, busy},
		{"github.com/aws/amazon-vpc-cni-k8s/issues/1399", "Client.InvalidParameterValue", "Network interface 'eni-0bb6d5cc5ed4f5140' is currently in use.", cloud.ErrUnavailable, inUse, busy, busy, busy},
		{"github.com/cilium/cilium/pull/31016", "InvalidParameterValue", "There aren't sufficient free Ipv4 addresses or prefixes", cloud.ErrSubnetFull, full, full, noAddress, busy},
		{"github.com/aws/amazon-vpc-cni-k8s/issues/1836", "InsufficientCidrBlocks", "The specified subnet does not have enough free cidr blocks to satisfy the request.", cloud.ErrSubnetFull, noBlock, noBlock, noBlock, noBlock},
		{"github.com/aws/amazon-vpc-cni-k8s/pull/1773", "InsufficientFreeAddressesInSubnet", "The specified subnet does not have enough free addresses to satisfy the request.", cloud.ErrSubnetFull, full, full, full, full},
		// It is an address that is in use, and no ENI.
		{"nobody", "InvalidParameterValue", "[10.0.0.9] have already been assigned but move is not allowed.", cloud.ErrUnavailable, taken, taken, taken, taken},
		{"github.com/pulumi/pulumi-aws/issues/2169", "InvalidIPAddress.InUse", "The specified address is already in use.", cloud.ErrUnavailable, taken, taken, taken, taken},
		{"nobody", "InvalidParameterValue", "The device index '99' is too big for a device in use.", cloud.ErrForbidden, other, other, noAddress, busy},
	} {
		c, ec2 := newCanned(t, engine.Options{})
		for _, action := range []string{"AttachNetworkInterface", "DetachNetworkInterface", "UnassignPrivateIpAddresses", "DeleteNetworkInterface"} {
			ec2.answers[action] = func(url.Values) (int, string) { return 400, refusal(tt.code, tt.message) }
		}
		_, attach := c.d.Attach(t.Context(), driver.Attach{ID: "eni-1", Instance: "i-1", Index: 1})
		on := driver.Interface{ID: "eni-1", Attachment: "eni-attach-1"}
		for what, is := range map[string]struct {
			err  error
			want cloud.Why
		}{
			"attach": {attach, tt.attach}, "detach": {c.d.Detach(t.Context(), on, ""), tt.detach}, "delete": {c.d.Delete(t.Context(), "eni-1", ""), tt.remove},
			"unassign": {c.d.Unassign(t.Context(), driver.Unassign{On: on, Family: eni.IPv4, Addresses: addrs("10.0.0.100")}), tt.unbind},
		} {
			if driver.Reason(is.err) != is.want || cloud.Kind(is.err) != tt.kind {
				t.Errorf("%s: %s: %s of %s is taken as %d, %v; want %d, %v", tt.from, tt.code, tt.message, what, driver.Reason(is.err), cloud.Kind(is.err), is.want, tt.kind)
			}
		}
	}
}

func TestReadsAreRepeatedAndChangesAreNot(t *testing.T) {
	c, ec2 := newCanned(t, engine.Options{})
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
			c, ec2 := newCanned(t, engine.Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Cluster: "c"})
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
	c, _ := s.open(t, "i-1", engine.Options{})
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	_, err := c.Interfaces(t.Context())
	if !errors.Is(err, cloud.ErrForbidden) || !strings.Contains(err.Error(), "AuthFailure") {
		t.Errorf("wrong credentials: %v", err)
	}
	secretsOf(t, "the error", err.Error())
	bare(t)
	lonely := newNode(New(Options{Instance: "i-1", Region: "eu-test-1", Endpoint: s.url, Metadata: serve(t, http.NotFoundHandler())}), engine.Options{})
	if _, err := lonely.Interfaces(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("no credentials: %v", err)
	}
}

func TestOnlyTheOptionsSayWhereEC2Is(t *testing.T) {
	bare(t)
	c := newNode(New(Options{Endpoint: "http://10.0.0.1"}), engine.Options{})
	if _, err := c.Limits(t.Context()); !errors.Is(err, cloud.ErrForbidden) {
		t.Errorf("an endpoint far away without TLS: %v", err)
	}
	// The whole contract ran with AWS_ENDPOINT_URL and its kin set to nobody.
	s := newSite(t, kind{})
	c, _ = s.open(t, "i-1", engine.Options{})
	s.Endpoint.FailNext("DescribeInstanceTypes", sim.Fault{})
	_, err := c.Limits(t.Context())
	must(t, err)
	if *c.d.api.options.BaseEndpoint != s.url {
		t.Errorf("EC2 is asked at %s", *c.d.api.options.BaseEndpoint)
	}
	d := New(Options{Instance: "i-1", Region: "eu-test-1"})
	must(t, d.connect(t.Context()))
	if got := d.api.options.BaseEndpoint; got != nil {
		t.Errorf("without an endpoint EC2 is asked at %s", *got)
	}
}
