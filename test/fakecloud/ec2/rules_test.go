package ec2_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

const nobody = "eni-0ffffffffffffffff"

// Each line is a call that EC2 refuses, and its code.
func TestRefusalsHaveTheCodesOfEC2(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	ctx, s := t.Context(), aws.String
	one, two, third := *w.create(1).NetworkInterfaceId, *w.create(0).NetworkInterfaceId, *w.create(0).NetworkInterfaceId
	at := w.attach(one, 1)
	made, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: s(subnetZ)})
	w.must(err)
	far := *made.NetworkInterface.NetworkInterfaceId
	ownENI := w.see(w.own(instance))

	create := func(change func(*sdk.CreateNetworkInterfaceInput)) func() error {
		return func() error {
			in := &sdk.CreateNetworkInterfaceInput{SubnetId: s(subnetA)}
			change(in)
			_, err := w.c.CreateNetworkInterface(ctx, in)
			return err
		}
	}
	attach := func(eni, i string, index int32) func() error {
		return func() error {
			_, err := w.c.AttachNetworkInterface(ctx, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni, InstanceId: &i, DeviceIndex: &index})
			return err
		}
	}
	assign := func(in sdk.AssignPrivateIpAddressesInput) func() error {
		return func() error { _, err := w.c.AssignPrivateIpAddresses(ctx, &in); return err }
	}
	unassign := func(eni string, addrs ...string) func() error {
		return func() error {
			_, err := w.c.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &eni, PrivateIpAddresses: addrs})
			return err
		}
	}
	detach := func(id string) func() error {
		return func() error {
			_, err := w.c.DetachNetworkInterface(ctx, &sdk.DetachNetworkInterfaceInput{AttachmentId: &id})
			return err
		}
	}
	remove := func(id string) func() error {
		return func() error {
			_, err := w.c.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
			return err
		}
	}
	type in = sdk.CreateNetworkInterfaceInput
	for _, tt := range []struct {
		name string
		call func() error
		code string
	}{
		{"a subnet that does not exist", create(func(i *in) { i.SubnetId = s("subnet-0ffffffffffffffff") }), "InvalidSubnetID.NotFound"},
		{"a subnet that can't exist", create(func(i *in) { i.SubnetId = s("subnet-of-nobody") }), "InvalidSubnetID.Malformed"},
		{"a group that does not exist", create(func(i *in) { i.Groups = []string{"sg-0ffffffffffffffff"} }), "InvalidGroup.NotFound"},
		{"a group that can't exist", create(func(i *in) { i.Groups = []string{"all"} }), "InvalidGroupId.Malformed"},
		{"another's address", create(func(i *in) { i.PrivateIpAddress = ownENI.PrivateIpAddress }), "InvalidIPAddress.InUse"},
		{"an address outside", create(func(i *in) { i.PrivateIpAddress = s("10.9.9.9") }), "InvalidParameterValue"},
		{"a reserved address", create(func(i *in) { i.PrivateIpAddress = s("10.0.0.1") }), "InvalidParameterValue"},
		{"more than the subnet has", create(func(i *in) { i.SubnetId, i.SecondaryPrivateIpAddressCount = s(subnetB), aws.Int32(11) }), "InsufficientFreeAddressesInSubnet"},
		{"more blocks than the subnet has", create(func(i *in) { i.SubnetId, i.Ipv4PrefixCount = s(subnetB), aws.Int32(1) }), "InsufficientCidrBlocks"},
		{"addresses and prefixes", create(func(i *in) { i.SecondaryPrivateIpAddressCount, i.Ipv4PrefixCount = aws.Int32(1), aws.Int32(1) }), "InvalidParameterCombination"},
		{"tags of another kind", create(func(i *in) {
			i.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: s("a"), Value: s("b")}}}}
		}), "InvalidParameterValue"},
		{"a tag of the cloud's own", create(func(i *in) {
			i.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: s("aws:a"), Value: s("b")}}}}
		}), "InvalidTagKey.Malformed"},
		{"a parameter that the endpoint does not know", create(func(i *in) {
			i.ConnectionTrackingSpecification = &types.ConnectionTrackingSpecificationRequest{TcpEstablishedTimeout: aws.Int32(60)}
		}), "UnknownParameter"},
		{"a trunk", create(func(i *in) { i.InterfaceType = types.NetworkInterfaceCreationTypeTrunk }), "UnsupportedOperation"},

		{"attach what is not", attach(nobody, instance, 2), "InvalidNetworkInterfaceID.NotFound"},
		{"attach what can't be", attach("eni-of-nobody", instance, 2), "InvalidNetworkInterfaceId.Malformed"},
		{"attach to nobody", attach(two, "i-0ffffffffffffffff", 2), "InvalidInstanceID.NotFound"},
		{"attach twice", attach(one, instance, 2), "InvalidNetworkInterface.InUse"},
		{"attach at a taken index", attach(two, instance, 1), "InvalidParameterValue"},
		{"attach in another zone", attach(far, instance, 2), "InvalidParameterCombination"},
		{"attach the third", attach(two, instance, 2), ""},
		{"attach one too many", attach(third, instance, 3), "AttachmentLimitExceeded"},

		{"assign to nobody", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: s(nobody), SecondaryPrivateIpAddressCount: aws.Int32(1)}), "InvalidNetworkInterfaceID.NotFound"},
		{"assign one too many", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, SecondaryPrivateIpAddressCount: aws.Int32(9)}), "PrivateIpAddressLimitExceeded"},
		{"assign prefixes too many", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, Ipv4PrefixCount: aws.Int32(9)}), "PrivateIpAddressLimitExceeded"},
		{"assign another's", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, PrivateIpAddresses: []string{*ownENI.PrivateIpAddress}}), "InvalidIPAddress.InUse"},
		{"assign outside", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, PrivateIpAddresses: []string{"10.9.9.9"}}), "InvalidParameterValue"},
		{"assign no address", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, PrivateIpAddresses: []string{"ten"}}), "InvalidParameterValue"},
		{"assign nothing", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one}), "MissingParameter"},
		{"assign two ways", assign(sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &one, SecondaryPrivateIpAddressCount: aws.Int32(1), PrivateIpAddresses: []string{"10.0.0.99"}}), "InvalidParameterCombination"},
		{"unassign the primary", unassign(one, *w.see(one).PrivateIpAddress), "InvalidParameterValue"},
		{"unassign what it does not have", unassign(one, "10.0.0.200"), "InvalidParameterValue"},
		{"unassign nothing", unassign(one), "MissingParameter"},

		{"detach nothing", detach("eni-attach-0ffffffffffffffff"), "InvalidAttachmentID.NotFound"},
		{"detach by the ENI's id", detach(one), "InvalidNetworkInterfaceAttachmentId.Malformed"},
		{"detach the instance's own", detach(*ownENI.Attachment.AttachmentId), "OperationNotPermitted"},
		{"delete what is attached", remove(one), "InvalidParameterValue"},
		{"delete nobody", remove(nobody), "InvalidNetworkInterfaceID.NotFound"},
		{"detach", detach(at), ""},
		{"delete", remove(one), ""},
		{"delete again", remove(one), "InvalidNetworkInterfaceID.NotFound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := codeOf(tt.call()); got != tt.code {
				t.Errorf("code %q (%v), want %q", got, err, tt.code)
			}
		})
	}
}

func codeOf(err error) (string, error) { return code(err), err }

// own is the id of an instance's own ENI.
func (w *world) own(i string) string {
	w.Helper()
	out, err := w.c.DescribeInstances(w.Context(), &sdk.DescribeInstancesInput{InstanceIds: []string{i}})
	w.must(err)
	return *out.Reservations[0].Instances[0].NetworkInterfaces[0].NetworkInterfaceId
}

func TestPrefixesAreAssignedAndUnassigned(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	ctx := t.Context()
	made, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA), Ipv4PrefixCount: aws.Int32(1), Ipv6PrefixCount: aws.Int32(1)})
	w.must(err)
	id := *made.NetworkInterface.NetworkInterfaceId
	out, err := w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, Ipv4Prefixes: []string{"10.0.0.64/28"}})
	w.must(err)
	if len(out.AssignedIpv4Prefixes) != 1 || *out.AssignedIpv4Prefixes[0].Ipv4Prefix != "10.0.0.64/28" || len(out.AssignedPrivateIpAddresses) != 0 {
		t.Errorf("assigned %+v", out)
	}
	six, err := w.c.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &id, Ipv6AddressCount: aws.Int32(2)})
	w.must(err)
	more, err := w.c.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &id, Ipv6PrefixCount: aws.Int32(1)})
	w.must(err)
	got := w.see(id)
	if len(got.Ipv4Prefixes) != 2 || len(got.Ipv6Prefixes) != 2 || len(got.Ipv6Addresses) != 2 || len(six.AssignedIpv6Addresses) != 2 ||
		more.AssignedIpv6Prefixes[0] != *got.Ipv6Prefixes[1].Ipv6Prefix {
		t.Errorf("it has %+v", got)
	}
	_, err = w.c.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &id, Ipv4Prefixes: []string{"10.0.0.64/28"}})
	w.must(err)
	gone, err := w.c.UnassignIpv6Addresses(ctx, &sdk.UnassignIpv6AddressesInput{NetworkInterfaceId: &id, Ipv6Addresses: six.AssignedIpv6Addresses[:1], Ipv6Prefixes: more.AssignedIpv6Prefixes})
	w.must(err)
	if !slices.Equal(gone.UnassignedIpv6Addresses, six.AssignedIpv6Addresses[:1]) || !slices.Equal(gone.UnassignedIpv6Prefixes, more.AssignedIpv6Prefixes) {
		t.Errorf("unassigned %+v", gone)
	}
	if got := w.see(id); len(got.Ipv4Prefixes) != 1 || len(got.Ipv6Prefixes) != 1 || len(got.Ipv6Addresses) != 1 {
		t.Errorf("it has %+v", got)
	}
	w.must(w.a.Fragment(subnetA, true))
	_, err = w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, Ipv4PrefixCount: aws.Int32(1)})
	w.fails(err, "InsufficientCidrBlocks")
}

func TestAddressesByNameAreThoseOfTheENI(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	named := func(primary, other string) sdk.CreateNetworkInterfaceInput {
		return sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA), PrivateIpAddresses: []types.PrivateIpAddressSpecification{
			{PrivateIpAddress: &other, Primary: aws.Bool(false)}, {PrivateIpAddress: &primary, Primary: aws.Bool(true)}}}
	}
	in := named("10.0.0.50", "10.0.0.51")
	made, err := w.c.CreateNetworkInterface(t.Context(), &in)
	w.must(err)
	if got := addresses(w.see(*made.NetworkInterface.NetworkInterfaceId)); !slices.Equal(got, []string{"10.0.0.50", "10.0.0.51"}) {
		t.Errorf("it has %v", got)
	}
	in = named("10.0.0.60", "10.0.0.61")
	in.PrivateIpAddress = aws.String("10.0.0.62")
	_, err = w.c.CreateNetworkInterface(t.Context(), &in)
	w.fails(err, "InvalidParameterValue")
}

func TestATokenMakesOneENI(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	try := func(token, description string) (string, error) {
		out, err := w.c.CreateNetworkInterface(t.Context(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(subnetA),
			ClientToken: &token, Description: &description})
		if err != nil {
			return "", err
		}
		return *out.NetworkInterface.NetworkInterfaceId, nil
	}
	one, err := try("t", "d")
	w.must(err)
	if again, err := try("t", "d"); err != nil || again != one {
		t.Errorf("the second call made %s, %v", again, err)
	}
	_, err = try("t", "e")
	w.fails(err, "IdempotentParameterMismatch")
	_, err = try(strings.Repeat("t", 65), "d")
	w.fails(err, "InvalidParameterValue")
}

func TestStatesAreShownAsEC2ShowsThem(t *testing.T) {
	w := newWorld(t, sim.Options{CreateTime: time.Hour, AttachTime: time.Hour, DetachTime: time.Hour}, ec2.Options{})
	one := *w.create(0).NetworkInterfaceId
	if got := w.see(one); got.Status != "pending" {
		t.Errorf("a new one is %s", got.Status)
	}
	w.a.SetTimes(0, time.Hour, time.Hour)
	two := *w.create(0).NetworkInterfaceId
	at := w.attach(two, 1)
	if got := w.see(two); got.Status != types.NetworkInterfaceStatusInUse || got.Attachment.Status != types.AttachmentStatusAttaching {
		t.Errorf("while attaching it is %s, %s", got.Status, got.Attachment.Status)
	}
	_, err := w.c.DetachNetworkInterface(t.Context(), &sdk.DetachNetworkInterfaceInput{AttachmentId: &at})
	w.fails(err, "IncorrectState")
	_, err = w.c.DetachNetworkInterface(t.Context(), &sdk.DetachNetworkInterfaceInput{AttachmentId: &at, Force: aws.Bool(true)})
	w.must(err)
	if got := w.see(two); got.Attachment.Status != types.AttachmentStatusDetaching {
		t.Errorf("while detaching it is %s, %s", got.Status, got.Attachment.Status)
	}
}

func TestAttributesAreModified(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	id := *w.create(0).NetworkInterfaceId
	for _, in := range []sdk.ModifyNetworkInterfaceAttributeInput{
		{Description: &types.AttributeValue{Value: aws.String("new")}},
		{SourceDestCheck: &types.AttributeBooleanValue{Value: aws.Bool(false)}},
		{Groups: []string{group}},
	} {
		in.NetworkInterfaceId = &id
		_, err := w.c.ModifyNetworkInterfaceAttribute(t.Context(), &in)
		w.must(err)
	}
	if got := w.see(id); *got.Description != "new" || *got.SourceDestCheck {
		t.Errorf("it is %+v", got)
	}
	_, err := w.c.ModifyNetworkInterfaceAttribute(t.Context(), &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &id})
	w.fails(err, "InvalidParameterCombination")
	_, err = w.c.ModifyNetworkInterfaceAttribute(t.Context(), &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &id,
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String("eni-attach-0ffffffffffffffff"), DeleteOnTermination: aws.Bool(true)}})
	w.fails(err, "InvalidAttachmentID.NotFound")
}

func TestTagsAreMadeFoundAndDeleted(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	ctx, s := t.Context(), aws.String
	id := *w.create(0).NetworkInterfaceId
	_, err := w.c.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{id, subnetA}, Tags: []types.Tag{{Key: s("a"), Value: s("1")}, {Key: s("b"), Value: s("")}}})
	w.must(err)
	find := func(name string, values ...string) (found []string) {
		out, err := w.c.DescribeTags(ctx, &sdk.DescribeTagsInput{Filters: []types.Filter{{Name: &name, Values: values}}})
		w.must(err)
		for _, tag := range out.Tags {
			found = append(found, fmt.Sprintf("%s %s %s=%s", tag.ResourceType, *tag.ResourceId, *tag.Key, *tag.Value))
		}
		return found
	}
	if diff := cmp.Diff([]string{"network-interface " + id + " a=1", "network-interface " + id + " b="}, find("resource-id", id)); diff != "" {
		t.Error(diff)
	}
	if got := find("tag:a", "1"); len(got) != 2 {
		t.Errorf("tag a is found as %v", got)
	}
	_, err = w.c.DeleteTags(ctx, &sdk.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: s("a"), Value: s("2")}, {Key: s("b")}}})
	w.must(err)
	if got := find("resource-id", id); len(got) != 1 {
		t.Errorf("after deleting it has %v", got)
	}
	_, err = w.c.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{nobody}, Tags: []types.Tag{{Key: s("a"), Value: s("1")}}})
	w.fails(err, "InvalidNetworkInterfaceID.NotFound")
	_, err = w.c.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{"what"}, Tags: []types.Tag{{Key: s("a"), Value: s("1")}}})
	w.fails(err, "InvalidID")
	if got := slices.Collect(maps.Keys(w.a.Calls())); !slices.Contains(got, "CreateTags") {
		t.Errorf("calls are %v", got)
	}
}
