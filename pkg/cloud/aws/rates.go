package aws

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// The actions of EC2 that methods of the driver are made of.
const (
	actDescribe  = "DescribeNetworkInterfaces"
	actModify    = "ModifyNetworkInterfaceAttribute"
	actDetach    = "DetachNetworkInterface"
	actAttach    = "AttachNetworkInterface"
	actCreate    = "CreateNetworkInterface"
	actDelete    = "DeleteNetworkInterface"
	actSubnets   = "DescribeSubnets"
	actTypes     = "DescribeInstanceTypes"
	actInstances = "DescribeInstances"
	actAssign    = "AssignPrivateIpAddresses"
	actUnassign  = "UnassignPrivateIpAddresses"

	actReserve   = "CreateSubnetCidrReservation"
	actUnreserve = "DeleteSubnetCidrReservation"
	actReserved  = "GetSubnetCidrReservations"
)

// methodActions returns the actions that each method is made of. The actions for IPv6 have
// names of their own and, except for UnassignIpv6Addresses, the same rate; here they count as
// those for IPv4.
func methodActions() map[string][]string {
	return map[string][]string{
		"Shape": {actTypes}, "Shapes": {actTypes}, "Alive": {actInstances}, "Subnets": {actSubnets}, driver.SubnetsBoth: {actSubnets, actSubnets}, "Interfaces": {actDescribe}, "Page": {actDescribe},
		"Create": {actCreate}, "Attach": {actAttach}, "Bind": {actModify}, "Detach": {actDetach}, "Delete": {actDelete},
		"Assign": {actAssign}, "Unassign": {actUnassign}, "SetGroups": {actModify},
		"Reserve": {actReserve}, "Unreserve": {actUnreserve}, "Reservations": {actReserved},
	}
}

// accountBuckets returns the token buckets of an account in a region, by the page that DESIGN.md
// names. Actions in none of its lists have the bucket that it gives for all that change something.
func accountBuckets() map[string]cloud.Bucket {
	listed, other, reads := cloud.Bucket{Burst: 100, PerSecond: 5}, cloud.Bucket{Burst: 50, PerSecond: 5}, cloud.Bucket{Burst: 100, PerSecond: 20}
	few := cloud.Bucket{Burst: 5, PerSecond: 1}
	return map[string]cloud.Bucket{
		actAssign: listed, actUnassign: listed, actCreate: listed, actDelete: listed, actModify: listed,
		actAttach: other, actDetach: other, actReserve: few, actUnreserve: few,
		actDescribe: reads, actSubnets: reads, actTypes: reads, actInstances: reads, actReserved: reads,
	}
}

// readRetries describes how the SDK repeats a read: the pauses are random, up to two seconds, then four, and so on.
func readRetries() driver.Retries {
	return driver.Retries{Tries: retry.DefaultMaxAttempts, First: 2 * time.Second, Most: retry.DefaultMaxBackoff}
}
