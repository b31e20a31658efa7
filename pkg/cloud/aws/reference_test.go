package aws

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
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
func cidrXML(id, vpc, v4, v6 string) string {
	return strings.NewReplacer("subnet-a", id, "vpc-1", vpc, "10.0.0.0/24", v4, "2001:db8::/64", v6).Replace(subnetXML)
}

func TestThePublishedENIsAreRead(t *testing.T) {
	answer := reference(t, "DescribeNetworkInterfaces")
	for _, tt := range []struct {
		instance, subnet string
		want             cloud.Interface
	}{
		{"i-1234567890abcdef0", cidrXML("subnet-c53c87ac", "vpc-cc3c87a5", "10.0.0.0/24", "2001:db8::/64"), cloud.Interface{
			ID: "eni-0f62d866", MAC: "02:81:60:cb:27:37", Subnet: "subnet-c53c87ac",
			V4:        eni.Net{Primary: netip.MustParsePrefix("10.0.0.146/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
			Addresses: addrs("10.0.0.148", "10.0.0.150"), Created: time.Date(2012, 7, 1, 21, 45, 27, 0, time.UTC)}},
		{"i-0598c7d356eba48d7", cidrXML("subnet-cd8a35a4", "vpc-f28a359b", "10.0.1.0/24", "2001:db8:1234:1a00::/64"), cloud.Interface{
			ID: "eni-a66ed5cf", MAC: "02:78:d7:00:8a:1e", Subnet: "subnet-cd8a35a4",
			V4:        eni.Net{Primary: netip.MustParsePrefix("10.0.1.233/24"), Gateway: netip.MustParseAddr("10.0.1.1")},
			V6:        eni.Net{Primary: netip.MustParsePrefix("2001:db8:1234:1a00::123/64"), Gateway: netip.MustParseAddr("fe80:ec2::1")},
			Addresses: addrs("10.0.1.20", "2001:db8:1234:1a00::456"), Created: time.Date(2012, 6, 27, 20, 8, 44, 0, time.UTC)}},
	} {
		c, ec2 := newCannedOf(t, tt.instance, engine.Options{})
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
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("DescribeSubnets", reference(t, "DescribeSubnets"))
	got, err := c.d.Subnets(t.Context(), driver.SubnetFilter{IDs: []string{"subnet-0bb1c79de301436ee", "subnet-02bf4c428bf44ebce"}})
	must(t, err)
	want := []driver.Subnet{
		{ID: "subnet-0bb1c79de301436ee", VPC: "vpc-0ee975135dEXAMPLE", Zone: "us-east-2c", V4: netip.MustParsePrefix("10.0.2.0/24"),
			Gateway4: netip.MustParseAddr("10.0.2.1"), Gateway6: routerV6, Free: 251, Ready: true, Tags: map[string]string{}},
		{ID: "subnet-02bf4c428bf44ebce", VPC: "vpc-07e8ffd50fEXAMPLE", Zone: "us-east-2b", V4: netip.MustParsePrefix("10.0.0.0/24"),
			V6: netip.MustParsePrefix("2600:1f16:115:200::/64"), Gateway4: netip.MustParseAddr("10.0.0.1"), Gateway6: routerV6, Free: 251, Ready: true,
			Tags: map[string]string{}},
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The one of the node's VPC is for new ENIs, the other is not.
	c, ec2 = newCanned(t, engine.Options{Subnets: []string{"subnet-0bb1c79de301436ee", "subnet-02bf4c428bf44ebce"}, Zone: "us-east-2c"})
	ec2.says("DescribeSubnets", reference(t, "DescribeSubnets"))
	ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-1", 0, "10.0.2.10", "subnet-a", "subnet-0bb1c79de301436ee", "vpc-1", "vpc-0ee975135dEXAMPLE", "10.0.0.", "10.0.2.")))
	list, err := c.Subnets(t.Context())
	must(t, err)
	if diff := cmp.Diff([]cloud.Subnet{{ID: "subnet-0bb1c79de301436ee", V4Net: netip.MustParsePrefix("10.0.2.0/24"), Free: 251, New: true}}, list, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestThePublishedAnswersToCreationsAreRead(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []netip.Addr
		v4   netip.Addr
	}{
		{"CreateNetworkInterface", addrs("10.0.2.169", "10.0.2.170", "10.0.2.171", "10.0.2.172"), netip.MustParseAddr("10.0.2.140")},
		{"CreateNetworkInterfaceV6", addrs("2001:db8:1234:1a00::123", "2001:db8:1234:1a00::456"), netip.MustParseAddr("10.0.2.130")}, // which is primary is not told
	} {
		c, ec2 := newCanned(t, engine.Options{})
		ec2.says("CreateNetworkInterface", reference(t, tt.file))
		mark := driver.Mark{Instance: "i-1", Token: "token", Asked: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Cluster: "c"}
		made, err := c.d.Create(t.Context(), driver.Create{Self: driver.Self{Instance: "i-1"}, Subnet: "subnet-a61dafcf", Mark: mark, V4: driver.Count{Singles: 4}})
		must(t, err)
		slices.SortFunc(made.Singles, netip.Addr.Compare)
		if diff := cmp.Diff(tt.want, made.Singles, compare); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
		if made.V4 != tt.v4 || made.V6.IsValid() || made.Index != -1 || made.State != driver.Pending || made.Mark != mark || made.Wrong != "" {
			t.Errorf("%s is %+v", tt.file, made)
		}
	}
}

func TestThePublishedAnswersToChangesAreRead(t *testing.T) {
	c, ec2 := newCanned(t, engine.Options{})
	ec2.says("DescribeInstances", instanceXML)
	ec2.says("DescribeInstanceTypes", typeXML)
	ec2.says("DescribeSubnets", cidrXML("subnet-a", "vpc-1", "10.2.2.0/24", "2001:db8::/64"))
	ec2.says("DescribeNetworkInterfaces", enisXML(eniXML("eni-01d32da61c165ac3e", 0, "10.2.2.10", "10.0.0.", "10.2.2.")))
	ec2.says("AssignPrivateIpAddresses", reference(t, "AssignPrivateIpAddresses"))
	got, err := c.AssignAddresses(t.Context(), "eni-01d32da61c165ac3e", eni.IPv4, 2)
	must(t, err)
	if diff := cmp.Diff(addrs("10.2.2.5", "10.2.2.7"), got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
