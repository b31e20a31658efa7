package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// Each quirk is looked at with it and without it.
func TestQuirksAreThoseOfEmulators(t *testing.T) {
	ctx, s := t.Context(), aws.String
	for _, tt := range []struct {
		name  string
		q     ec2.Quirks
		holds func(w *world) bool // with the quirk
	}{
		{"answers to an assignment list all addresses", ec2.Quirks{AssignListsAll: true}, func(w *world) bool {
			id := w.create(1).NetworkInterfaceId
			out, err := w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(2)})
			w.must(err)
			return len(out.AssignedPrivateIpAddresses) == 4 && *out.AssignedPrivateIpAddresses[0].PrivateIpAddress == *w.see(*id).PrivateIpAddress
		}},
		{"tokens are not looked at", ec2.Quirks{NoTokens: true}, func(w *world) bool {
			for range 2 {
				_, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: s(subnetA), ClientToken: s("t")})
				w.must(err)
			}
			return len(w.ids()) == 4
		}},
		{"lists come in one page", ec2.Quirks{NoPaging: true}, func(w *world) bool {
			for range 5 {
				w.create(0)
			}
			out, err := w.c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5)})
			w.must(err)
			return len(out.NetworkInterfaces) == 7 && out.NextToken == nil
		}},
		{"there are no limits", ec2.Quirks{NoLimits: true}, func(w *world) bool {
			id := w.create(0).NetworkInterfaceId
			w.attach(*id, 1)
			_, err := w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, SecondaryPrivateIpAddressCount: aws.Int32(30)})
			for index := range int32(3) {
				eni := *w.create(0).NetworkInterfaceId
				_, e := w.c.AttachNetworkInterface(ctx, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni, InstanceId: s(instance), DeviceIndex: aws.Int32(index + 2)})
				if err == nil {
					err = e
				}
			}
			return err == nil
		}},
		{"prefixes are never there", ec2.Quirks{NoPrefixes: true}, func(w *world) bool {
			made, err := w.c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: s(subnetA), Ipv4PrefixCount: aws.Int32(1)})
			w.must(err)
			id := made.NetworkInterface.NetworkInterfaceId
			out, err := w.c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: aws.Int32(1)})
			w.must(err)
			return len(out.AssignedIpv4Prefixes) == 0 && len(w.see(*id).Ipv4Prefixes) == 0
		}},
		{"delete on termination does not change", ec2.Quirks{NoDeleteOnTerminate: true}, func(w *world) bool {
			id := *w.create(0).NetworkInterfaceId
			at := w.attach(id, 1)
			_, err := w.c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &id,
				Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: &at, DeleteOnTermination: aws.Bool(true)}})
			w.must(err)
			return !*w.see(id).Attachment.DeleteOnTermination
		}},
		{"secondary addresses are not found", ec2.Quirks{NoSecondaryFilter: true}, func(w *world) bool {
			made := w.create(1)
			primary, secondary := *made.PrivateIpAddress, *made.PrivateIpAddresses[1].PrivateIpAddress
			return len(w.ids(by("addresses.private-ip-address", primary))) == 1 && len(w.ids(by("addresses.private-ip-address", secondary))) == 0
		}},
		{"unknown filters are internal errors", ec2.Quirks{FiltersFail: true}, func(w *world) bool {
			_, err := w.c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{Filters: []types.Filter{by("colour", "red")}})
			e, ok := asResponse(err)
			return ok && e.HTTPStatusCode() == 500
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for q, want := range map[ec2.Quirks]bool{tt.q: true, ec2.AllQuirks(): true, {}: false} {
				if got := tt.holds(newWorld(t, sim.Options{}, ec2.Options{Quirks: q})); got != want {
					t.Errorf("with %+v it is %v", q, got)
				}
			}
		})
	}
}
