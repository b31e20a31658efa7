package bce

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// The actions that methods of the driver are made of, as the API's reference names them.
const (
	actInstance, actQuota             = "GetInstanceDetail", "GetEniQuota"
	actDetail, actList                = "GetEniDetail", "ListEni"
	actSubnets, actSubnet             = "ListSubnets", "GetSubnetDetail"
	actCreate, actDelete              = "CreateEni", "DeleteEni"
	actAttach, actDetach              = "AttachEniInstance", "DetachEniInstance"
	actAdd, actCross, actRemove       = "BatchAddPrivateIp", "BatchAddPrivateIpCrossSubnet", "BatchDeletePrivateIp"
	actUpdate, actGroups              = "UpdateEni", "UpdateEniSecurityGroup"
	actOwnAdd, actOwnCross, actOwnDel = "InstanceBatchAddIp", "InstanceBatchAddIpCrossSubnet", "InstanceBatchDelIp"

	actReserve, actUnreserve, actReserved = "CreateIpreserve", "DeleteIpreserve", "ListIpreserve"
)

// methodActions returns the actions that each method is made of for a virtual machine. (For bare
// metal it is GetInstanceEni in the place of GetInstanceDetail, and no list.) The ENIs of an
// instance take two requests. ENIs by ID take one each, whose rate is not that of lists.
func methodActions() map[string][]string {
	return map[string][]string{
		"Shape": {actInstance, actQuota}, "Alive": {actInstance}, "Subnets": {actSubnets}, driver.SubnetsOne: {actSubnet}, "Page": {actList},
		"Interfaces": {actInstance, actList}, driver.InterfacesMade: {actList}, driver.InterfacesLoose: {actList}, driver.InterfacesByID: {actDetail},
		"Create": {actCreate}, "Attach": {actAttach}, "Detach": {actDetach}, "Delete": {actDelete},
		"Assign": {actAdd}, "Unassign": {actRemove}, driver.AssignPrimary: {actOwnAdd}, driver.UnassignPrimary: {actOwnDel},
		driver.AssignCross: {actCross}, driver.AssignPrimaryCross: {actOwnCross},
		"Rewrite": {actUpdate}, "SetGroups": {actGroups},
		"Reserve": {actReserve}, "Unreserve": {actUnreserve}, "Reservations": {actReserved},
	}
}

// accountBuckets returns the rates to which Baidu's own driver keeps. The cloud publishes none. That driver reserves no ranges: as
// nothing waits for those the least is enough.
func accountBuckets() map[string]cloud.Bucket {
	ten, five, one := cloud.Bucket{Burst: 10, PerSecond: 5}, cloud.Bucket{Burst: 5, PerSecond: 5}, cloud.Bucket{Burst: 1, PerSecond: 1}
	return map[string]cloud.Bucket{
		actAdd: ten, actCross: ten, actRemove: ten, actInstance: ten, actQuota: ten, actDetail: ten, actSubnet: ten,
		actCreate: five, actAttach: five,
		actDelete: one, actList: one, actSubnets: one,
		actReserve: one, actUnreserve: one, actReserved: one,
	}
}

// readTries is how often a read is made if the cloud refuses it for its rate. All nodes of an
// account share the rate, and lists pass once a second. All tries together take about as long
// as the agent gives a call.
const readTries = 15

// readRetries describes how a read is repeated. pause is the longest first pause.
func readRetries(pause time.Duration) driver.Retries {
	return driver.Retries{Tries: readTries, First: pause, Most: 8 * pause, Least: 50}
}
