package ec2_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// ids describes the ENIs that pass filters.
func (w *world) ids(filters ...types.Filter) []string {
	w.Helper()
	out, err := w.c.DescribeNetworkInterfaces(w.Context(), &sdk.DescribeNetworkInterfacesInput{Filters: filters})
	w.must(err)
	var ids []string
	for _, i := range out.NetworkInterfaces {
		ids = append(ids, *i.NetworkInterfaceId)
	}
	return ids
}

func by(name string, values ...string) types.Filter { return types.Filter{Name: &name, Values: values} }

func TestFiltersFindWhatTheyNameAndNothingElse(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	s := aws.String
	made, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: s(subnetA), Description: s("enipool node*1"),
		SecondaryPrivateIpAddressCount: aws.Int32(1), Ipv6AddressCount: aws.Int32(1),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: s("node"), Value: s("n1")}}}}})
	w.must(err)
	one := *made.NetworkInterface.NetworkInterfaceId
	at := w.attach(one, 1)
	loose := *w.create(0).NetworkInterfaceId
	seen := w.see(one)
	for _, tt := range []struct {
		name string
		f    types.Filter
	}{
		{"id", by("network-interface-id", one)},
		{"id, one of two", by("network-interface-id", nobody, one)},
		{"description", by("description", "enipool node\\*1")},
		{"description with *", by("description", "enipool*")},
		{"description with ?", by("description", "enipool node?1")},
		{"tag", by("tag:node", "n1")},
		{"tag with *", by("tag:node", "n*")},
		{"tag-key", by("tag-key", "node")},
		{"secondary address", by("addresses.private-ip-address", *seen.PrivateIpAddresses[1].PrivateIpAddress)},
		{"primary address", by("private-ip-address", *seen.PrivateIpAddress)},
		{"IPv6 address", by("ipv6-addresses.ipv6-address", *seen.Ipv6Addresses[0].Ipv6Address)},
		{"MAC", by("mac-address", *seen.MacAddress)},
		{"attachment", by("attachment.attachment-id", at)},
		{"index", by("attachment.device-index", "1")},
		{"delete on termination", by("attachment.delete-on-termination", "false")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.ids(tt.f); !slices.Equal(got, []string{one}) {
				t.Errorf("found %v, want %s", got, one)
			}
		})
	}
	for _, tt := range []struct {
		fs   []types.Filter
		want []string
	}{
		{[]types.Filter{by("attachment.instance-id", instance)}, []string{w.own(instance), one}},
		{[]types.Filter{by("attachment.instance-id", instance), by("attachment.device-index", "1")}, []string{one}},
		{[]types.Filter{by("status", "available")}, []string{loose}},
		{[]types.Filter{by("attachment.status", "attached")}, []string{w.own(instance), w.own(other), one}},
		{[]types.Filter{by("subnet-id", subnetB)}, nil},
		{[]types.Filter{by("tag:node", "n2")}, nil},
		{[]types.Filter{by("subnet-id", subnetA), by("vpc-id", "vpc-0aaaaaaaaaaaaaaaa"), by("availability-zone", "us-east-1a"),
			by("group-id", group), by("interface-type", "interface"), by("requester-managed", "false"), by("source-dest-check", "true"),
			by("owner-id", "*"), by("private-dns-name", "ip-10-0-0-*"), by("status", "in-use", "available")},
			[]string{w.own(instance), w.own(other), one, loose}},
	} {
		if got := w.ids(tt.fs...); !slices.Equal(got, tt.want) {
			t.Errorf("found %v, want %v", got, tt.want)
		}
	}
	_, err = w.c.DescribeNetworkInterfaces(t.Context(), &sdk.DescribeNetworkInterfacesInput{Filters: []types.Filter{by("colour", "red")}})
	w.fails(err, "InvalidParameterValue")
}

func TestListsComeInPages(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	for range 11 {
		w.create(0)
	}
	all := w.ids(by("subnet-id", subnetA))
	var got []string
	pages := 0
	for p := sdk.NewDescribeNetworkInterfacesPaginator(w.c, &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5)}); p.HasMorePages(); pages++ {
		out, err := p.NextPage(t.Context())
		w.must(err)
		for _, i := range out.NetworkInterfaces {
			got = append(got, *i.NetworkInterfaceId)
		}
		if pages == 0 { // what comes and goes in between mixes nothing up
			_, err := w.c.DeleteNetworkInterface(t.Context(), &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &got[2]})
			w.must(err)
			w.create(0)
		}
	}
	if pages != 3 || !slices.Equal(got, all) {
		t.Errorf("%d pages of %v, want %v", pages, got, all)
	}
	for p := sdk.NewDescribeInstanceTypesPaginator(w.c, &sdk.DescribeInstanceTypesInput{MaxResults: aws.Int32(5)}); p.HasMorePages(); pages++ {
		_, err := p.NextPage(t.Context())
		w.must(err)
	}
	if pages != 5 {
		t.Errorf("instance types came in %d pages", pages-3)
	}
	for name, in := range map[string]sdk.DescribeNetworkInterfacesInput{
		"InvalidParameterValue":       {MaxResults: aws.Int32(4)},
		"InvalidNextToken":            {NextToken: aws.String("what")},
		"InvalidParameterCombination": {MaxResults: aws.Int32(5), NetworkInterfaceIds: []string{all[0]}},
	} {
		_, err := w.c.DescribeNetworkInterfaces(t.Context(), &in)
		w.fails(err, name)
	}
}

func TestAPageIsAskedForAgain(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	for range 6 {
		w.create(0)
	}
	first, err := w.c.DescribeNetworkInterfaces(t.Context(), &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5)})
	w.must(err)
	for range 2 {
		out, err := w.c.DescribeNetworkInterfaces(t.Context(), &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5), NextToken: first.NextToken})
		w.must(err)
		if len(out.NetworkInterfaces) != 3 || out.NextToken != nil {
			t.Errorf("the second page has %d and token %v", len(out.NetworkInterfaces), out.NextToken)
		}
	}
}

func TestBigListsMustBeAskedForInPages(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{MaxUnpaged: 2})
	_, err := w.c.DescribeNetworkInterfaces(t.Context(), nil)
	w.must(err)
	w.create(0)
	_, err = w.c.DescribeNetworkInterfaces(t.Context(), nil)
	w.fails(err, "OperationNotPermitted")
	_, err = w.c.DescribeNetworkInterfaces(t.Context(), &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5)})
	w.must(err)
}

func TestInstancesAreDescribed(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	one := *w.create(1).NetworkInterfaceId
	w.attach(one, 1)
	out, err := w.c.DescribeInstances(t.Context(), &sdk.DescribeInstancesInput{InstanceIds: []string{instance}})
	w.must(err)
	i := out.Reservations[0].Instances[0]
	if len(out.Reservations) != 1 || i.InstanceType != "m5.large" || i.State.Name != types.InstanceStateNameRunning || *i.SubnetId != subnetA ||
		*i.Placement.AvailabilityZone != "us-east-1a" || *i.Tags[0].Value != instance || len(i.NetworkInterfaces) != 2 {
		t.Fatalf("it is %+v", i)
	}
	own, second := i.NetworkInterfaces[0], i.NetworkInterfaces[1]
	if *own.PrivateIpAddress != *i.PrivateIpAddress || !*own.Attachment.DeleteOnTermination || *second.NetworkInterfaceId != one ||
		*second.Attachment.DeviceIndex != 1 || len(second.PrivateIpAddresses) != 2 || *second.PrivateIpAddresses[1].Primary {
		t.Errorf("its ENIs are %+v, %+v", own, second)
	}
	for f, want := range map[string]int{"instance-type": 2, "instance-state-name": 0, "availability-zone": 0} {
		value := map[string]string{"instance-type": "m5.*", "instance-state-name": "stopped", "availability-zone": "us-east-1b"}[f]
		out, err := w.c.DescribeInstances(t.Context(), &sdk.DescribeInstancesInput{Filters: []types.Filter{by(f, value)}})
		w.must(err)
		if len(out.Reservations) != want {
			t.Errorf("filter %s finds %d, want %d", f, len(out.Reservations), want)
		}
	}
	_, err = w.c.DescribeInstances(t.Context(), &sdk.DescribeInstancesInput{InstanceIds: []string{"i-0ffffffffffffffff"}})
	w.fails(err, "InvalidInstanceID.NotFound")
	w.must(w.a.Terminate(instance))
	out, err = w.c.DescribeInstances(t.Context(), &sdk.DescribeInstancesInput{InstanceIds: []string{instance}})
	w.must(err)
	if i := out.Reservations[0].Instances[0]; i.State.Name != types.InstanceStateNameTerminated || len(i.NetworkInterfaces) != 0 {
		t.Errorf("terminated it is %+v", i)
	}
}

func TestLimitsAreDescribedByType(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	out, err := w.c.DescribeInstanceTypes(t.Context(), &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large", "p4d.24xlarge", "m4.large"}})
	w.must(err)
	if len(out.InstanceTypes) != 3 {
		t.Fatalf("there are %d", len(out.InstanceTypes))
	}
	old, m5, p4 := out.InstanceTypes[0], out.InstanceTypes[1], out.InstanceTypes[2]
	if n := m5.NetworkInfo; *n.MaximumNetworkInterfaces != 3 || *n.Ipv4AddressesPerInterface != 10 || *n.Ipv6AddressesPerInterface != 10 ||
		!*n.Ipv6Supported || *n.MaximumNetworkCards != 1 || *n.DefaultNetworkCardIndex != 0 || *m5.MemoryInfo.SizeInMiB != 8192 || *m5.VCpuInfo.DefaultVCpus != 2 {
		t.Errorf("m5.large is %+v", n)
	}
	if n := p4.NetworkInfo; *n.MaximumNetworkInterfaces != 60 || len(n.NetworkCards) != 4 || *n.NetworkCards[3].MaximumNetworkInterfaces != 15 {
		t.Errorf("p4d.24xlarge is %+v", n)
	}
	if m5.Hypervisor != types.InstanceTypeHypervisorNitro || old.Hypervisor != types.InstanceTypeHypervisorXen {
		t.Errorf("hypervisors are %s and %s", m5.Hypervisor, old.Hypervisor)
	}
	filtered, err := w.c.DescribeInstanceTypes(t.Context(), &sdk.DescribeInstanceTypesInput{Filters: []types.Filter{by("instance-type", "t3.*")}})
	w.must(err)
	if len(filtered.InstanceTypes) != 2 {
		t.Errorf("t3.* are %d", len(filtered.InstanceTypes))
	}
	_, err = w.c.DescribeInstanceTypes(t.Context(), &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"z9.nano"}})
	w.fails(err, "InvalidInstanceType")
}

func TestSubnetsGroupsAndTheVPCAreDescribed(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	w.create(3)
	out, err := w.c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{Filters: []types.Filter{by("tag:pool", "0a")}})
	w.must(err)
	if s := out.Subnets[0]; len(out.Subnets) != 1 || *s.SubnetId != subnetA || *s.CidrBlock != "10.0.0.0/24" || *s.AvailableIpAddressCount != 251-2-4 ||
		*s.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock != "2600:1f14:0:1::/64" || *s.AvailabilityZone != "us-east-1a" || s.State != types.SubnetStateAvailable ||
		s.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlockState.State != types.SubnetCidrBlockStateCodeAssociated {
		t.Errorf("subnet A is %+v", s)
	}
	for f, want := range map[string]int{"availability-zone": 2, "vpc-id": 3, "cidr-block": 1} {
		value := map[string]string{"availability-zone": "us-east-1a", "vpc-id": "vpc-0aaaaaaaaaaaaaaaa", "cidr-block": "10.0.2.0/24"}[f]
		out, err := w.c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{Filters: []types.Filter{by(f, value)}})
		w.must(err)
		if len(out.Subnets) != want {
			t.Errorf("filter %s finds %d, want %d", f, len(out.Subnets), want)
		}
	}
	_, err = w.c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{SubnetIds: []string{"subnet-0ffffffffffffffff"}})
	w.fails(err, "InvalidSubnetID.NotFound")
	groups, err := w.c.DescribeSecurityGroups(t.Context(), &sdk.DescribeSecurityGroupsInput{GroupIds: []string{group}})
	w.must(err)
	if g := groups.SecurityGroups[0]; *g.GroupName != "default" || *g.VpcId != "vpc-0aaaaaaaaaaaaaaaa" || *g.Description != "all of them" {
		t.Errorf("the group is %+v", g)
	}
	_, err = w.c.DescribeSecurityGroups(t.Context(), &sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0ffffffffffffffff"}})
	w.fails(err, "InvalidGroup.NotFound")
	vpcs, err := w.c.DescribeVpcs(t.Context(), nil)
	w.must(err)
	if v := vpcs.Vpcs[0]; *v.CidrBlock != "10.0.0.0/16" || *v.CidrBlockAssociationSet[0].CidrBlock != "10.0.0.0/16" ||
		*v.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock != "2600:1f14::/56" {
		t.Errorf("the VPC is %+v", v)
	}
}

func TestDescribesLagBehindChanges(t *testing.T) {
	w := newWorld(t, sim.Options{Lag: time.Hour, Seed: 1}, ec2.Options{})
	w.create(0) // an hour is long: what was made just now is not seen
	if got := w.ids(); len(got) != 2 {
		t.Errorf("%v are seen, want the instances' own", got)
	}
	w.a.SetLag(0)
	if got := w.ids(); len(got) != 3 {
		t.Errorf("%v are seen", got)
	}
}
