package aws

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var compare = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

// The reference names no ranges for these subnets; they are made up here.
func cidrXML(id, v4, v6 string) string {
	return strings.NewReplacer("subnet-a", id, "10.0.0.0/24", v4, "2001:db8::/64", v6).Replace(subnetXML)
}

func TestThePublishedENIsAreRead(t *testing.T) {
	answer := reference(t, "DescribeNetworkInterfaces")
	for _, tt := range []struct {
		instance, subnet string
		want             cloud.Interface
	}{
		{"i-1234567890abcdef0", cidrXML("subnet-c53c87ac", "10.0.0.0/24", "2001:db8::/64"), cloud.Interface{
			ID: "eni-0f62d866", MAC: "02:81:60:cb:27:37", Subnet: "subnet-c53c87ac",
			V4:        eni.Net{Primary: netip.MustParsePrefix("10.0.0.146/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
			Addresses: addrs("10.0.0.148", "10.0.0.150"), Created: time.Date(2012, 7, 1, 21, 45, 27, 0, time.UTC)}},
		{"i-0598c7d356eba48d7", cidrXML("subnet-cd8a35a4", "10.0.1.0/24", "2001:db8:1234:1a00::/64"), cloud.Interface{
			ID: "eni-a66ed5cf", MAC: "02:78:d7:00:8a:1e", Subnet: "subnet-cd8a35a4",
			V4:        eni.Net{Primary: netip.MustParsePrefix("10.0.1.233/24"), Gateway: netip.MustParseAddr("10.0.1.1")},
			V6:        eni.Net{Primary: netip.MustParsePrefix("2001:db8:1234:1a00::123/64"), Gateway: netip.MustParseAddr("fe80:ec2::1")},
			Addresses: addrs("10.0.1.20", "2001:db8:1234:1a00::456"), Created: time.Date(2012, 6, 27, 20, 8, 44, 0, time.UTC)}},
	} {
		c, ec2 := newCanned(t, Options{})
		c.o.Instance = tt.instance
		ec2.says("DescribeNetworkInterfaces", answer)
		ec2.says("DescribeSubnets", tt.subnet)
		got, err := c.Interfaces(t.Context())
		must(t, err)
		if diff := cmp.Diff([]cloud.Interface{tt.want}, got, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.instance, diff)
		}
		// The other ENI is another instance's: EC2 would not have shown it.
		if out := c.Quarantined(); len(out) != 1 || !strings.Contains(out[0].Why, "another instance") {
			t.Errorf("left out: %+v", out)
		}
	}
}

func TestThePublishedSubnetsAreRead(t *testing.T) {
	c, ec2 := newCanned(t, Options{Subnets: []string{"subnet-0bb1c79de301436ee"}, Zone: "us-east-2c"})
	ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.0.10", "subnet-a", "subnet-02bf4c428bf44ebce", "vpc-1", "vpc-0ee975135dEXAMPLE")))
	ec2.says("DescribeSubnets", reference(t, "DescribeSubnets"))
	got, err := c.Subnets(t.Context())
	must(t, err)
	want := []cloud.Subnet{
		{ID: "subnet-02bf4c428bf44ebce", V4Net: netip.MustParsePrefix("10.0.0.0/24"), V6Net: netip.MustParsePrefix("2600:1f16:115:200::/64"), Free: 251},
		{ID: "subnet-0bb1c79de301436ee", V4Net: netip.MustParsePrefix("10.0.2.0/24"), Free: 251, New: true},
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePublishedAnswersToCreationsAreRead(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []netip.Addr
		v6   string
	}{
		{"CreateNetworkInterface", addrs("10.0.2.169", "10.0.2.170", "10.0.2.171", "10.0.2.172"), "invalid Prefix"},
		{"CreateNetworkInterfaceV6", addrs("2001:db8:1234:1a00::456"), "2001:db8:1234:1a00::123/64"},
	} {
		c, ec2 := newCanned(t, Options{})
		ec2.says("CreateNetworkInterface", reference(t, tt.file))
		ec2.says("DescribeSubnets", cidrXML("subnet-a61dafcf", "10.0.2.0/24", "2001:db8:1234:1a00::/64"))
		ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.2.10", "subnet-a", "subnet-a61dafcf", "10.0.0.1", "10.0.2.1")))
		s, err := c.connect(t.Context())
		must(t, err)
		made, err := c.make(t.Context(), s, cloud.Create{Token: "token", Subnet: "subnet-a61dafcf", V4: 4}, eni.Limits{ENIs: 4, V4: 10})
		must(t, err)
		if diff := cmp.Diff(tt.want, made.Addresses, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
		if made.V6.Primary.String() != tt.v6 || made.Index != -1 || !made.pending || !made.Ours || made.Token != "token" {
			t.Errorf("%s is %+v", tt.file, made)
		}
	}
}

func TestThePublishedAnswersToChangesAreRead(t *testing.T) {
	c, ec2 := newCanned(t, Options{})
	ec2.says("DescribeInstances", instanceXML)
	ec2.says("DescribeInstanceTypes", typeXML)
	ec2.says("DescribeSubnets", cidrXML("subnet-a", "10.2.2.0/24", "2001:db8::/64"))
	ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-01d32da61c165ac3e", 0, "10.2.2.10", "10.0.0.", "10.2.2.")))
	ec2.says("AssignPrivateIpAddresses", reference(t, "AssignPrivateIpAddresses"))
	got, err := c.AssignAddresses(t.Context(), "eni-01d32da61c165ac3e", eni.IPv4, 2)
	must(t, err)
	if diff := cmp.Diff(addrs("10.2.2.5", "10.2.2.7"), got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
