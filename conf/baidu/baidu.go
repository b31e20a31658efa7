// Package baidu holds what an account of Baidu's cloud needs for enipool, as custom policies of its
// access control: policy.json, the rights of a node's user or role, and policy-operator.json, those of
// an operator, which calls the cloud for all nodes.
//
// Calls that it is for, and no others:
//
//	VPC_READ, SUBNET_READ         subnets with their free addresses
//	ENIC_READ, ENIC_FULL_CONTROL  ENIs: list, show, status, quota; create, describe
//	                              anew, attach, detach, delete; their addresses
//	VM_READ                       the instance with its own ENI
//	SUBNET_FULL_CONTROL           an operator alone: reserved ranges of subnets. Without
//	                              reserve in any Subnet leave that entry out
//
// Narrow its region to the node's. Where pods have addresses of the instance's own
// ENI, as on bare metal, VM_OPERATE is needed too.
//
// The form of a policy and the READ permissions are those of published policies.
// ENIC_FULL_CONTROL and SUBNET_FULL_CONTROL follow their pattern: no list of permissions is published. If the
// policy editor of the console refuses it, take the system policies for full control of
// ENIs and for reading subnets and instances.
package baidu

import _ "embed"

// Policy is the policy of a node's user or role.
//
//go:embed policy.json
var Policy string

// OperatorPolicy is the policy of an operator's user or role.
//
//go:embed policy-operator.json
var OperatorPolicy string
