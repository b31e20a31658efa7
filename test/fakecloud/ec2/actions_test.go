package ec2_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

func TestAnENIIsMadeAttachedFilledDetachedAndDeleted(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	ctx := t.Context()
	made, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{
		SubnetId: aws.String(subnetA), Groups: []string{group}, Description: aws.String("for pods"),
		SecondaryPrivateIpAddressCount: aws.Int32(2), ClientToken: aws.String("t1"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface,
			Tags: []types.Tag{{Key: aws.String("node"), Value: aws.String("n1")}}}},
	})
	w.must(err)
	id := *made.NetworkInterface.NetworkInterfaceId
	if got := w.see(id); got.Status != types.NetworkInterfaceStatusAvailable || len(got.PrivateIpAddresses) != 3 || *got.Description != "for pods" ||
		got.Attachment != nil || *got.TagSet[0].Value != "n1" || *got.Groups[0].GroupName != "default" {
		t.Fatalf("the new ENI is %+v", got)
	}
	at := w.attach(id, 1)
	_, err = w.c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &id,
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: &at, DeleteOnTermination: aws.Bool(true)}})
	w.must(err)
	got := w.see(id)
	if got.Status != types.NetworkInterfaceStatusInUse || *got.Attachment.DeviceIndex != 1 || *got.Attachment.InstanceId != instance ||
		got.Attachment.Status != types.AttachmentStatusAttached || !*got.Attachment.DeleteOnTermination {
		t.Fatalf("the attached ENI is %+v, %+v", got, got.Attachment)
	}
	assigned, err := w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id,
		SecondaryPrivateIpAddressCount: aws.Int32(3)})
	w.must(err)
	var fresh []string
	for _, a := range assigned.AssignedPrivateIpAddresses {
		fresh = append(fresh, *a.PrivateIpAddress)
	}
	if diff := cmp.Diff(addresses(w.see(id))[3:], fresh); len(fresh) != 3 || diff != "" {
		t.Errorf("assigned %v: %s", fresh, diff)
	}
	_, err = w.c.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: fresh})
	w.must(err)
	if got := w.see(id); len(got.PrivateIpAddresses) != 3 {
		t.Errorf("after unassigning it has %v", addresses(got))
	}
	_, err = w.c.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
	w.fails(err, "InvalidParameterValue")
	_, err = w.c.DetachNetworkInterface(ctx, &sdk.DetachNetworkInterfaceInput{AttachmentId: &at})
	w.must(err)
	_, err = w.c.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
	w.must(err)
	_, err = w.c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
	w.fails(err, "InvalidNetworkInterfaceID.NotFound")
}

func TestCallsAtOnceLoseNothing(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{})
	id := *w.create(0).NetworkInterfaceId
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			out, err := w.c.AssignPrivateIpAddresses(t.Context(), &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: aws.Int32(2)})
			if err != nil || len(out.AssignedPrivateIpAddresses) != 2 {
				t.Errorf("assigned %+v, %v", out, err)
			}
			w.ids()
		})
	}
	all.Wait()
	got := addresses(w.see(id))
	slices.Sort(got)
	if len(slices.Compact(got)) != 49 {
		t.Errorf("there are %d addresses: %v", len(got), got)
	}
}
