package health

import "slices"

// The reasons of a report: what a Kubernetes condition has, which never changes. Why there are pool.Kinds beside
// them is told there. AddressesAvailable is that of a node without a fault. The others stand
// in the order in which they count, for people: where several are true, pool.Rank decides.
const (
	AddressesAvailable  = "AddressesAvailable"  // pods that lack addresses get some in time
	CloudForbidden      = "CloudForbidden"      // the cloud refuses the node's credentials, or what it asks for
	WrongInstance       = "WrongInstance"       // the cloud has no instance of the node's name, or this node is another one
	CloudUnavailable    = "CloudUnavailable"    // the cloud does not answer, or fails
	OperatorSilent      = "OperatorSilent"      // the operator does not answer, or can't be asked
	CacheUnusable       = "CacheUnusable"       // no pod can be served from the node cache
	AddressLimitReached = "AddressLimitReached" // the node has as many addresses as it can ever have
	SubnetExhausted     = "SubnetExhausted"     // no subnet that the node may use has one left
	ENILimitReached     = "ENILimitReached"     // of the instance or of the account
	NoSubnet            = "NoSubnet"            // there is no subnet for the ENI that is needed
	CloudThrottled      = "CloudThrottled"      // the cloud wants fewer calls
	LinkMissing         = "LinkMissing"         // an ENI is attached and its link is not on the node
	SetupFailed         = "SetupFailed"         // new addresses can't be set up on the node
	CloudFailed         = "CloudFailed"         // a call failed otherwise, or its outcome is not known
	NoFreeAddress       = "NoFreeAddress"       // nothing failed: they are still to come
)

// fault is a reason in words, with what a person can do about it.
type fault struct{ reason, words, remedy string }

// faults are the reasons of a fault in the order in which people read of them.
var faults = [...]fault{
	{CloudForbidden, "the cloud refuses what the node asks for", "`enipoolctl cloud check` on the node tells credentials, permissions and keys of agent.yaml (cloud.subnets, cloud.securityGroups) apart"},
	{WrongInstance, "the cloud has no such instance, or it is not this node", "put right what names it: with cloud.provider sim the key node, else cloud.instance, cloud.region and the instance metadata; and run the agent in the node's own network namespace (hostNetwork); `enipoolctl cloud check` on the node says what the cloud has"},
	{CloudUnavailable, "the cloud does not answer", "`enipoolctl cloud check` on the node tells whether it is the instance metadata, the credentials or the API, whose place cloud.region and cloud.endpoint say"},
	{OperatorSilent, "the operator does not answer", "look at its pods and its Lease (kubectl -n kube-system get deployment,lease enipool-operator) and at the node's NodeNetwork (kubectl describe enn NODE); one with observe: true answers no agent; if the agent asks the API server in vain this says so"},
	{CacheUnusable, "the node cache can't be used", "the agent tries again and rebuilds a missing or damaged cache from the cloud and the kernel; if this stays put right what is named here (such as a full or read-only file system) or in the agent's log"},
	{AddressLimitReached, "the node can hold no more", "move pods to other nodes, or raise what limits it; the message names it: a key of agent.yaml, the kubelet's maxPods, or the size of the instance"},
	{SubnetExhausted, "no subnet of the node has an address left", "name another subnet of the node's zone in cloud.subnets or cloud.subnetTags and restart the agent, or delete what else uses addresses there"},
	{ENILimitReached, "the node may have no more ENIs", "raise the account's quota, pool.maxAllocateENI or, on Baidu, cloud.maxENIs, detach ENIs that are not enipool's, or take a larger instance"},
	{NoSubnet, "no subnet takes the ENI that is needed", "name a subnet of the node's zone in cloud.subnets or cloud.subnetTags and restart the agent; `enipoolctl cloud check` on the node says what is wrong with those that are named"},
	{CloudThrottled, "the cloud wants fewer calls", "it is tried again by itself; if that lasts, lower cloud.callsPerSecond, for all nodes of the account share its rate"},
	{LinkMissing, "an ENI is attached and its link is not on the node", "look for the device in the kernel's log (dmesg); if the ENI is detached attach it again, if not reload its driver or restart the node; when the link is back its addresses are used again by themselves"},
	{SetupFailed, "new addresses can't be set up on the node", "the agent's log has the error"},
	{CloudFailed, "calls to the cloud fail", "they are tried again; the agent's log has the cloud's words, and `enipoolctl cloud check` on the node tries what it can"},
	{NoFreeAddress, "more addresses are still to come", "`enipoolctl pool show` on the node says what is under way"},
}

// Reasons returns all reasons that a report can have, that of a node without a fault
// first.
func Reasons() []string {
	list := []string{AddressesAvailable}
	for _, f := range faults {
		list = append(list, f.reason)
	}
	return list
}

// Remedy returns what a person can do about the fault that the reason names.
func Remedy(reason string) string {
	f, _ := faultOf(reason)
	return f.remedy
}

// faultOf returns the fault with the reason, false and NoFreeAddress for any other reason.
func faultOf(reason string) (f fault, known bool) {
	i := slices.IndexFunc(faults[:], func(f fault) bool { return f.reason == reason })
	if i < 0 {
		return faults[len(faults)-1], false
	}
	return faults[i], true
}
