package ec2_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/test/fakecloud/ec2"
)

// What the samples of the EC2 API reference show in the answer of each action, for
// an attached ENI with all that it can have. Items of lists are left out of paths.
var published = map[string]string{
	"CreateNetworkInterface": `requestId networkInterface/networkInterfaceId networkInterface/subnetId networkInterface/vpcId
		networkInterface/availabilityZone networkInterface/description networkInterface/ownerId networkInterface/requesterManaged
		networkInterface/status networkInterface/macAddress networkInterface/privateIpAddress networkInterface/privateDnsName
		networkInterface/sourceDestCheck networkInterface/groupSet/groupId networkInterface/groupSet/groupName networkInterface/tagSet
		networkInterface/privateIpAddressesSet/privateIpAddress networkInterface/privateIpAddressesSet/primary`,
	"AttachNetworkInterface":          `requestId attachmentId`,
	"ModifyNetworkInterfaceAttribute": `requestId return`,
	"AssignPrivateIpAddresses":        `requestId networkInterfaceId assignedPrivateIpAddressesSet/privateIpAddress return`,
	"AssignIpv6Addresses":             `requestId networkInterfaceId assignedIpv6Addresses`,
	"UnassignIpv6Addresses":           `requestId networkInterfaceId unassignedIpv6Addresses`,
	"UnassignPrivateIpAddresses":      `requestId return`,
	"CreateTags":                      `requestId return`,
	"DescribeTags":                    `requestId tagSet/resourceId tagSet/resourceType tagSet/key tagSet/value`,
	"DescribeNetworkInterfaces": `requestId networkInterfaceSet/networkInterfaceId networkInterfaceSet/subnetId networkInterfaceSet/vpcId
		networkInterfaceSet/availabilityZone networkInterfaceSet/description networkInterfaceSet/ownerId
		networkInterfaceSet/requesterManaged networkInterfaceSet/status networkInterfaceSet/macAddress
		networkInterfaceSet/privateIpAddress networkInterfaceSet/sourceDestCheck networkInterfaceSet/groupSet/groupId
		networkInterfaceSet/groupSet/groupName networkInterfaceSet/attachment/attachmentId networkInterfaceSet/attachment/instanceId
		networkInterfaceSet/attachment/instanceOwnerId networkInterfaceSet/attachment/deviceIndex networkInterfaceSet/attachment/status
		networkInterfaceSet/attachment/attachTime networkInterfaceSet/attachment/deleteOnTermination networkInterfaceSet/tagSet/key
		networkInterfaceSet/tagSet/value networkInterfaceSet/privateIpAddressesSet/privateIpAddress
		networkInterfaceSet/privateIpAddressesSet/primary networkInterfaceSet/ipv6AddressesSet`,
	"DescribeInstances": `requestId reservationSet/reservationId reservationSet/ownerId reservationSet/groupSet
		reservationSet/instancesSet/instanceId reservationSet/instancesSet/imageId reservationSet/instancesSet/instanceState/code
		reservationSet/instancesSet/instanceState/name reservationSet/instancesSet/privateDnsName reservationSet/instancesSet/amiLaunchIndex
		reservationSet/instancesSet/instanceType reservationSet/instancesSet/launchTime
		reservationSet/instancesSet/placement/availabilityZone reservationSet/instancesSet/placement/tenancy
		reservationSet/instancesSet/subnetId reservationSet/instancesSet/vpcId reservationSet/instancesSet/privateIpAddress
		reservationSet/instancesSet/sourceDestCheck reservationSet/instancesSet/groupSet/groupId
		reservationSet/instancesSet/architecture reservationSet/instancesSet/hypervisor reservationSet/instancesSet/tagSet/key
		reservationSet/instancesSet/networkInterfaceSet/networkInterfaceId reservationSet/instancesSet/networkInterfaceSet/subnetId
		reservationSet/instancesSet/networkInterfaceSet/vpcId reservationSet/instancesSet/networkInterfaceSet/ownerId
		reservationSet/instancesSet/networkInterfaceSet/status reservationSet/instancesSet/networkInterfaceSet/macAddress
		reservationSet/instancesSet/networkInterfaceSet/privateIpAddress reservationSet/instancesSet/networkInterfaceSet/privateDnsName
		reservationSet/instancesSet/networkInterfaceSet/sourceDestCheck reservationSet/instancesSet/networkInterfaceSet/groupSet/groupId
		reservationSet/instancesSet/networkInterfaceSet/attachment/attachmentId
		reservationSet/instancesSet/networkInterfaceSet/attachment/deviceIndex
		reservationSet/instancesSet/networkInterfaceSet/attachment/status reservationSet/instancesSet/networkInterfaceSet/attachment/attachTime
		reservationSet/instancesSet/networkInterfaceSet/attachment/deleteOnTermination
		reservationSet/instancesSet/networkInterfaceSet/privateIpAddressesSet/privateIpAddress
		reservationSet/instancesSet/networkInterfaceSet/privateIpAddressesSet/primary
		reservationSet/instancesSet/networkInterfaceSet/ipv6AddressesSet`,
	"DescribeInstanceTypes": `requestId instanceTypeSet/instanceType instanceTypeSet/currentGeneration instanceTypeSet/bareMetal
		instanceTypeSet/hypervisor instanceTypeSet/vCpuInfo/defaultVCpus instanceTypeSet/memoryInfo/sizeInMiB
		instanceTypeSet/networkInfo/networkPerformance instanceTypeSet/networkInfo/maximumNetworkInterfaces
		instanceTypeSet/networkInfo/maximumNetworkCards instanceTypeSet/networkInfo/defaultNetworkCardIndex
		instanceTypeSet/networkInfo/networkCards/networkCardIndex instanceTypeSet/networkInfo/networkCards/networkPerformance
		instanceTypeSet/networkInfo/networkCards/maximumNetworkInterfaces instanceTypeSet/networkInfo/ipv4AddressesPerInterface
		instanceTypeSet/networkInfo/ipv6AddressesPerInterface instanceTypeSet/networkInfo/ipv6Supported
		instanceTypeSet/networkInfo/enaSupport instanceTypeSet/networkInfo/efaSupported`,
	"DescribeSubnets": `requestId subnetSet/subnetId subnetSet/subnetArn subnetSet/state subnetSet/ownerId subnetSet/vpcId subnetSet/cidrBlock
		subnetSet/ipv6CidrBlockAssociationSet/ipv6CidrBlock subnetSet/ipv6CidrBlockAssociationSet/associationId
		subnetSet/ipv6CidrBlockAssociationSet/ipv6CidrBlockState/state subnetSet/availableIpAddressCount subnetSet/availabilityZone
		subnetSet/availabilityZoneId subnetSet/defaultForAz subnetSet/mapPublicIpOnLaunch subnetSet/tagSet
		subnetSet/assignIpv6AddressOnCreation`,
	"DescribeSecurityGroups": `requestId securityGroupInfo/ownerId securityGroupInfo/groupId securityGroupInfo/groupName
		securityGroupInfo/groupDescription securityGroupInfo/vpcId securityGroupInfo/ipPermissions securityGroupInfo/ipPermissionsEgress`,
	"DescribeVpcs": `requestId vpcSet/vpcId vpcSet/ownerId vpcSet/state vpcSet/cidrBlock vpcSet/cidrBlockAssociationSet/cidrBlock
		vpcSet/cidrBlockAssociationSet/associationId vpcSet/cidrBlockAssociationSet/cidrBlockState/state
		vpcSet/ipv6CidrBlockAssociationSet/ipv6CidrBlock vpcSet/ipv6CidrBlockAssociationSet/ipv6CidrBlockState/state
		vpcSet/dhcpOptionsId vpcSet/instanceTenancy vpcSet/isDefault vpcSet/tagSet`,
	"DetachNetworkInterface": `requestId return`,
	"DeleteNetworkInterface": `requestId return`,
}

func TestAnswersHaveTheElementsThatEC2Publishes(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{Keys: map[string]string{}})
	// answer returns the paths of an answer, and ask checks them.
	answer := func(action, query string) ([]string, string) {
		t.Helper()
		r, err := http.Post(w.url, "application/x-www-form-urlencoded", strings.NewReader("Version=2016-11-15&Action="+action+"&"+query))
		must(t, err)
		defer r.Body.Close()
		text := read(t, r.Body)
		if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/xml;charset=UTF-8" {
			t.Fatalf("%s: status %d: %s", action, r.StatusCode, text)
		}
		return paths(t, action+"Response", text), text
	}
	ask := func(action, query string) []string {
		t.Helper()
		got, text := answer(action, query)
		for _, want := range strings.Fields(published[action]) {
			if !slices.Contains(got, want) {
				t.Errorf("%s has no %s:\n%s", action, want, text)
			}
		}
		return got
	}
	tags := url.Values{"TagSpecification.1.ResourceType": {"network-interface"}, "TagSpecification.1.Tag.1.Key": {"a"}, "TagSpecification.1.Tag.1.Value": {"b"}}
	ask("CreateNetworkInterface", "SubnetId="+subnetA+"&Ipv6AddressCount=1&"+tags.Encode())
	id := w.idsIn(subnetA)[2]
	ask("AttachNetworkInterface", "DeviceIndex=1&InstanceId="+instance+"&NetworkInterfaceId="+id)
	var at string
	w.a.View(0, func(tx *sim.Tx) {
		i, err := tx.Interface(id)
		must(t, err)
		at = i.Attachment.ID
	})
	ask("ModifyNetworkInterfaceAttribute", "Description.Value=new&NetworkInterfaceId="+id)
	ask("AssignPrivateIpAddresses", "PrivateIpAddress.1=10.0.0.200&NetworkInterfaceId="+id)
	if got, _ := answer("AssignPrivateIpAddresses", "Ipv4PrefixCount=1&NetworkInterfaceId="+id); !slices.Contains(got, "assignedIpv4PrefixSet/ipv4Prefix") {
		t.Errorf("the answer to an assigned prefix has %v", got)
	}
	ask("AssignIpv6Addresses", "Ipv6Addresses.1=2600:1f14:0:1::99&NetworkInterfaceId="+id)
	ask("AssignIpv6Addresses", "Ipv6PrefixCount=1&NetworkInterfaceId="+id)
	got := ask("DescribeNetworkInterfaces", "")
	for _, want := range []string{"ipv4PrefixSet/ipv4Prefix", "ipv6PrefixSet/ipv6Prefix", "ipv6AddressesSet/ipv6Address"} {
		if !slices.Contains(got, "networkInterfaceSet/"+want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, action := range []string{"DescribeInstances", "DescribeInstanceTypes", "DescribeSubnets", "DescribeSecurityGroups", "DescribeVpcs", "DescribeTags"} {
		ask(action, "")
	}
	ask("CreateTags", "ResourceId.1="+id+"&Tag.1.Key=c&Tag.1.Value=d")
	ask("DeleteTags", "ResourceId.1="+id+"&Tag.1.Key=c")
	ask("UnassignPrivateIpAddresses", "PrivateIpAddress.1=10.0.0.200&NetworkInterfaceId="+id)
	ask("UnassignIpv6Addresses", "Ipv6Addresses.1=2600:1f14:0:1::99&NetworkInterfaceId="+id)
	ask("DetachNetworkInterface", "AttachmentId="+at)
	ask("DeleteNetworkInterface", "NetworkInterfaceId="+id)
}

// idsIn are the ENIs of a subnet, as the account has them.
func (w *world) idsIn(subnet string) (ids []string) {
	w.a.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if i.Subnet == subnet {
				ids = append(ids, i.ID)
			}
		}
	})
	return ids
}

// paths are those of all elements below the root, items left out.
func paths(t *testing.T, root, text string) []string {
	t.Helper()
	var at, list []string
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		must(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Space != "http://ec2.amazonaws.com/doc/2016-11-15/" {
				t.Fatalf("element %v is of another namespace", e.Name)
			}
			if at = append(at, e.Name.Local); at[0] != root {
				t.Fatalf("the root is %s, want %s", at[0], root)
			}
			list = append(list, strings.ReplaceAll(strings.Join(at[1:], "/"), "/item", ""))
		case xml.EndElement:
			at = at[:len(at)-1]
		}
	}
}

func TestErrorsHaveTheShapeThatEC2Publishes(t *testing.T) {
	w := newWorld(t, sim.Options{}, ec2.Options{Keys: map[string]string{}})
	r, err := http.Post(w.url, "application/x-www-form-urlencoded", strings.NewReader("Version=2016-11-15&Action=DeleteNetworkInterface&NetworkInterfaceId="+nobody))
	must(t, err)
	defer r.Body.Close()
	text := read(t, r.Body)
	id := r.Header.Get("X-Amzn-Requestid")
	want := `<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>InvalidNetworkInterfaceID.NotFound</Code><Message>The networkInterface ID &#39;` + nobody +
		`&#39; does not exist</Message></Error></Errors><RequestID>` + id + `</RequestID></Response>`
	if text != want || r.StatusCode != 400 || id == "" {
		t.Errorf("status %d\n%s\nwant\n%s", r.StatusCode, text, want)
	}
}
