package bce

import "github.com/enipool/enipool/pkg/cloud"

// The actions that methods of the driver are made of, as pkg/simulate names them, too.
const (
	actInstance = "GetInstance"
	actQuota    = "GetEniQuota"
	actList     = "ListEni"
	actSubnets  = "ListSubnets"
	actCreate   = "CreateEni"
	actAttach   = "AttachEniInstance"
	actDetach   = "DetachEniInstance"
	actDelete   = "DeleteEni"
	actAdd      = "BatchAddPrivateIp"
	actRemove   = "BatchDeletePrivateIp"
	actUpdate   = "UpdateEni"
)

// methodActions are the actions that each method is made of. Interfaces of an instance are asked
// for by two; ENIs by their IDs one by one, at a rate that lists do not share.
func methodActions() map[string][]string {
	return map[string][]string{
		"Shape": {actInstance, actQuota}, "Gone": {actInstance}, "Subnets": {actSubnets}, "Interfaces": {actInstance, actList}, "Page": {actList},
		"Create": {actCreate}, "Attach": {actAttach}, "Detach": {actDetach}, "Delete": {actDelete},
		"Assign": {actAdd}, "Unassign": {actRemove}, "Rewrite": {actUpdate}, "SetGroups": {actUpdate},
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
