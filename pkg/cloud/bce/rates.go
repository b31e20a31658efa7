package bce

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// The actions that methods of the driver are made of, as the API's reference names them.
const (
	actInstance = "GetInstanceDetail"
	actQuota    = "GetEniQuota"
	actDetail   = "GetEniDetail"
	actList     = "ListEni"
	actSubnets  = "ListSubnets"
	actSubnet   = "GetSubnetDetail"
	actCreate   = "CreateEni"
	actAttach   = "AttachEniInstance"
	actDetach   = "DetachEniInstance"
	actDelete   = "DeleteEni"
	actAdd      = "BatchAddPrivateIp"
	actRemove   = "BatchDeletePrivateIp"
	actUpdate   = "UpdateEni"
	actGroups   = "UpdateEniSecurityGroup"
	actOwnAdd   = "InstanceBatchAddIp"
	actOwnDel   = "InstanceBatchDelIp"
)

// methodActions are the actions that each method is made of: those of a virtual machine. Of bare
// metal GetInstanceEni tells what GetInstanceDetail does, and no list is asked for. Interfaces of
// an instance are asked for by two; ENIs by their IDs one by one, at a rate that lists do not share.
func methodActions() map[string][]string {
	return map[string][]string{
		"Shape": {actInstance, actQuota}, "Alive": {actInstance}, "Subnets": {actSubnets}, driver.SubnetsOne: {actSubnet}, "Page": {actList},
		"Interfaces": {actInstance, actList}, driver.InterfacesMade: {actList}, driver.InterfacesLoose: {actList}, driver.InterfacesByID: {actDetail},
		"Create": {actCreate}, "Attach": {actAttach}, "Detach": {actDetach}, "Delete": {actDelete},
		"Assign": {actAdd}, "Unassign": {actRemove}, driver.AssignPrimary: {actOwnAdd}, driver.UnassignPrimary: {actOwnDel},
		"Rewrite": {actUpdate}, "SetGroups": {actGroups},
	}
}

// buckets are those to which Baidu's own driver keeps: the cloud publishes none.
func buckets() map[string]cloud.Bucket {
	ten, five, one := cloud.Bucket{Burst: 10, PerSecond: 5}, cloud.Bucket{Burst: 5, PerSecond: 5}, cloud.Bucket{Burst: 1, PerSecond: 1}
	return map[string]cloud.Bucket{
		actAdd: ten, actRemove: ten, actInstance: ten,
		actCreate: five, actAttach: five,
		actDelete: one, actList: one, actSubnets: one,
	}
}

// readTries is how often a read is made that the cloud refuses for its rate: all nodes
// of an account share that, and lists pass once a second. It takes about as long as the
// agent lets a call take.
const readTries = 15

// retries are those of a read, whose first pause is about so long.
func retries(pause time.Duration) driver.Retries {
	return driver.Retries{Tries: readTries, First: pause, Most: 8 * pause, Least: 50}
}
