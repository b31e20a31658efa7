package topology

import "time"

// Cause is what keeps an address from a pod. It is the reason of the event that tells of it.
type Cause string

// The causes.
const (
	None             Cause = ""
	TopologyNotReady Cause = "TopologyNotReady" // it can't be served as it is: people have to change it, or a subnet
	NoStatefulSet    Cause = "NoStatefulSet"    // a Fixed address is for pods of one
	NoSubnet         Cause = "NoSubnet"         // none is ready in the zone
	OtherZone        Cause = "OtherZone"        // the pod's address lies in another one
	NoNode           Cause = "NoNode"           // no Node is in a zone of its subnets
	NoRoom           Cause = "NoRoom"           // each address is taken
	NoSlot           Cause = "NoSlot"           // no ENI of the node can carry one more
	NoPlace          Cause = "NoPlace"          // each ENI of the node is full, it can have no more, and no place is idle
	Conflict         Cause = "Conflict"         // an unmanaged ENI has it
	Moving           Cause = "Moving"           // it comes from another node, or the cloud has yet to answer
	InUse            Cause = "InUse"            // it is to end, and a pod still has it
)

// Wait is why there is no address yet. Its message names what is awaited, and who can help.
type Wait struct {
	Cause   Cause
	Message string
	Until   time.Time // when it is worth another try though nothing else changes, zero if nobody knows
}
