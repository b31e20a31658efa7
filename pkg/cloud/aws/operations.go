package aws

import "github.com/aws/aws-sdk-go-v2/service/ec2"

// operations are the calls of EC2 that this package makes. A field of type *ec2.Client would
// link all of its 700 calls into a program that uses templates: there the linker drops no
// exported method of a type that can be reached.
type operations struct {
	AssignIpv6Addresses             request[ec2.AssignIpv6AddressesInput, ec2.AssignIpv6AddressesOutput]
	AssignPrivateIpAddresses        request[ec2.AssignPrivateIpAddressesInput, ec2.AssignPrivateIpAddressesOutput]
	AttachNetworkInterface          request[ec2.AttachNetworkInterfaceInput, ec2.AttachNetworkInterfaceOutput]
	CreateNetworkInterface          request[ec2.CreateNetworkInterfaceInput, ec2.CreateNetworkInterfaceOutput]
	CreateSubnetCidrReservation     request[ec2.CreateSubnetCidrReservationInput, ec2.CreateSubnetCidrReservationOutput]
	DeleteNetworkInterface          request[ec2.DeleteNetworkInterfaceInput, ec2.DeleteNetworkInterfaceOutput]
	DeleteSubnetCidrReservation     request[ec2.DeleteSubnetCidrReservationInput, ec2.DeleteSubnetCidrReservationOutput]
	DescribeInstanceTypes           request[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	DescribeInstances               request[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	DescribeNetworkInterfaces       request[ec2.DescribeNetworkInterfacesInput, ec2.DescribeNetworkInterfacesOutput]
	DescribeSecurityGroups          request[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput]
	DescribeSubnets                 request[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
	DetachNetworkInterface          request[ec2.DetachNetworkInterfaceInput, ec2.DetachNetworkInterfaceOutput]
	GetSubnetCidrReservations       request[ec2.GetSubnetCidrReservationsInput, ec2.GetSubnetCidrReservationsOutput]
	ModifyNetworkInterfaceAttribute request[ec2.ModifyNetworkInterfaceAttributeInput, ec2.ModifyNetworkInterfaceAttributeOutput]
	UnassignIpv6Addresses           request[ec2.UnassignIpv6AddressesInput, ec2.UnassignIpv6AddressesOutput]
	UnassignPrivateIpAddresses      request[ec2.UnassignPrivateIpAddressesInput, ec2.UnassignPrivateIpAddressesOutput]

	options ec2.Options
}

func operationsOf(client *ec2.Client) operations {
	return operations{
		AssignIpv6Addresses: client.AssignIpv6Addresses, AssignPrivateIpAddresses: client.AssignPrivateIpAddresses,
		AttachNetworkInterface: client.AttachNetworkInterface, CreateNetworkInterface: client.CreateNetworkInterface,
		DeleteNetworkInterface: client.DeleteNetworkInterface, DescribeInstanceTypes: client.DescribeInstanceTypes,
		DescribeInstances: client.DescribeInstances, DescribeNetworkInterfaces: client.DescribeNetworkInterfaces,
		DescribeSecurityGroups: client.DescribeSecurityGroups, DescribeSubnets: client.DescribeSubnets,
		DetachNetworkInterface: client.DetachNetworkInterface, ModifyNetworkInterfaceAttribute: client.ModifyNetworkInterfaceAttribute,
		UnassignIpv6Addresses: client.UnassignIpv6Addresses, UnassignPrivateIpAddresses: client.UnassignPrivateIpAddresses,
		CreateSubnetCidrReservation: client.CreateSubnetCidrReservation, DeleteSubnetCidrReservation: client.DeleteSubnetCidrReservation,
		GetSubnetCidrReservations: client.GetSubnetCidrReservations,
		options:                   client.Options(),
	}
}
