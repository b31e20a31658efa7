package crd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeNetwork is what one node wants of the cloud and has of it. It has the Node's name.
type NodeNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeNetworkSpec   `json:"spec"`
	Status NodeNetworkStatus `json:"status,omitempty"`
}

// NodeNetworkList is what a list of them returns.
type NodeNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeNetwork `json:"items"`
}

// Mode is who calls the cloud for a node.
type Mode string

// The modes. Self: the agent, and Operator: the operator, in spec and status. A status is Joining or
// Leaving while the calls go over from one to the other, and nobody makes new ones.
const (
	Self     Mode = "Self"
	Operator Mode = "Operator"
	Joining  Mode = "Joining"
	Leaving  Mode = "Leaving"
)

// NodeNetworkSpec is what the node's agent wants. There is no instance in it: the operator takes that
// from the Node, which an agent may not write.
type NodeNetworkSpec struct {
	Mode         Mode         `json:"mode"`
	Families     []string     `json:"families,omitempty"`     // IPv4, IPv6
	Slots        int32        `json:"slots"`                  // general slots, those in Release not counted
	Waiting      int32        `json:"waiting,omitempty"`      // pods for which no address is free
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"` // when Waiting rose from 0; nil at 0
	IdleSlots    int32        `json:"idleSlots,omitempty"`    // that the node could do without but for one, up to some minutes ago

	IdleIn map[string]int32 `json:"idleIn,omitempty"` // by subnet, of a node with addresses in several: idle slots there

	SeenReclaim int32 `json:"seenReclaim,omitempty"` // the status.reclaim that the rest is an answer to
	Pool        Pool  `json:"pool,omitzero"`

	Release           []string       `json:"release,omitempty"`           // addresses or whole prefixes that are releasing in the node cache
	ReleaseInterfaces []string       `json:"releaseInterfaces,omitempty"` // ENI IDs
	Held              []string       `json:"held,omitempty"`              // addresses or whole prefixes that no pod can get: others on the node use them
	NoLink            []string       `json:"noLink,omitempty"`            // ENI IDs that the node has no link for
	Idle              []string       `json:"idle,omitempty"`              // ENI IDs that pods use nothing of, where a burstable node returns them
	Topologies        []TopologyWant `json:"topologies,omitempty"`

	Boot         string    `json:"boot,omitempty"`         // ID of the boot that the lists tell of
	SeenRevision int64     `json:"seenRevision,omitempty"` // the highest status.revision that the node cache has seen
	SeenEpoch    int64     `json:"seenEpoch,omitempty"`    // the status.epoch that the agent had read when it wrote last what goes back
	Handover     *Handover `json:"handover,omitempty"`
}

// Pool has the node's settings of the pool, as agent.yaml has them. The operator plans with them.
type Pool struct {
	Mode              string `json:"mode,omitempty"` // batch, burstable or besteffort
	Batch             int32  `json:"batch,omitempty"`
	FirstENI          int32  `json:"firstENI,omitempty"`
	MaxAllocate       int32  `json:"maxAllocate,omitempty"`    // slots, 0: the instance's limits
	MaxAllocateENI    int32  `json:"maxAllocateENI,omitempty"` // ENIs for pods, 0: the instance's limit
	MaxIPsPerENI      int32  `json:"maxIPsPerENI,omitempty"`   // of a family, the primary one included; 0: the instance's limit
	PreAllocateENI    int32  `json:"preAllocateENI,omitempty"` // ENIs made before pods need them
	Multiple          int32  `json:"multiple,omitempty"`
	Partial           bool   `json:"partial,omitempty"`
	ReturnENIs        bool   `json:"returnENIs,omitempty"`
	TopologyPlaces    int32  `json:"topologyPlaces,omitempty"` // places that general slots never take
	MinAllocate       int32  `json:"minAllocate,omitempty"`
	PreAllocate       int32  `json:"preAllocate,omitempty"`
	MaxAboveWatermark int32  `json:"maxAboveWatermark,omitempty"`
}

// TopologyWant is how many slots pods of a topology want, without general slots.
type TopologyWant struct {
	Name    string `json:"name"`
	Slots   int32  `json:"slots"`
	Waiting int32  `json:"waiting,omitempty"`
}

// Handover is what the cloud may have heard of while its calls go over to the other side.
type Handover struct {
	Tokens            []string `json:"tokens,omitempty"` // of ENIs that may be being made
	Release           []string `json:"release,omitempty"`
	ReleaseInterfaces []string `json:"releaseInterfaces,omitempty"`
}

// NodeNetworkStatus is what the node has, as the operator knows it.
type NodeNetworkStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"` // negative: of a spec that was put back, another is awaited
	Revision           int64 `json:"revision,omitempty"`           // rises with each change of ENIs, Releasing, Quarantined and Reserved
	Epoch              int64 `json:"epoch,omitempty"`              // of the leader that wrote last
	Created            int64 `json:"created,omitempty"`            // serial number of the ENI made last
	Mode               Mode  `json:"mode,omitempty"`
	Slots              int32 `json:"slots"`
	Interfaces         int32 `json:"interfaces"`
	Reclaim            int32 `json:"reclaim,omitempty"` // idle slots that the node is asked to do without while pods of others wait, all in all

	ReclaimIn []string `json:"reclaimIn,omitempty"` // the subnets in any of which the slots asked for last are to lie

	InstanceFacts `json:",inline"`
	DescribedAt   *metav1.Time `json:"describedAt,omitempty"`

	ENIs              []ENI         `json:"enis,omitempty"`              // in the order in which they were made
	Releasing         []string      `json:"releasing,omitempty"`         // accepted: nobody takes these back
	LeavingInterfaces []string      `json:"leavingInterfaces,omitempty"` // accepted, as Releasing
	Quarantined       []Quarantined `json:"quarantined,omitempty"`
	Reserved          []Reserved    `json:"reserved,omitempty"`
	Leaders           []Leader      `json:"leaders,omitempty"` // the latest ones that wrote it, the one of Epoch last

	Causes     []Cause            `json:"causes,omitempty"`
	Handover   *StatusHandover    `json:"handover,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Leader is one who wrote the status.
type Leader struct {
	Epoch int64 `json:"epoch"`
	First int64 `json:"first"` // the revision that it wrote first
}

// InstanceFacts are what the cloud tells of the instance.
type InstanceFacts struct {
	Instance     string  `json:"instance,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	Limits       *Limits `json:"limits,omitempty"`
}

// Limits are the instance's, as eni.Limits.
type Limits struct {
	Interfaces int32  `json:"interfaces,omitempty"`
	V4         int32  `json:"v4,omitempty"` // addresses per ENI, the primary one included
	V6         int32  `json:"v6,omitempty"`
	NoPrimary  bool   `json:"noPrimary,omitempty"` // the primary ENI gets no addresses for pods
	V4Block    *Block `json:"v4Block,omitempty"`   // delegated prefixes, nil where there are none
	V6Block    *Block `json:"v6Block,omitempty"`
}

// Block is how delegated prefixes look.
type Block struct {
	Bits int32 `json:"bits,omitempty"`
	Size int32 `json:"size,omitempty"` // slots
}

// ENI is one of the node.
type ENI struct {
	ID        string       `json:"id"`
	Index     int32        `json:"index"`
	MAC       string       `json:"mac,omitempty"`
	Subnet    string       `json:"subnet,omitempty"`
	State     string       `json:"state,omitempty"` // Creating, Attached, Detached or Leaving
	Token     string       `json:"token,omitempty"`
	Topology  string       `json:"topology,omitempty"` // only pods of that one get its addresses
	V4        *Family      `json:"v4,omitempty"`
	V6        *Family      `json:"v6,omitempty"`
	Addresses []string     `json:"addresses,omitempty"` // and delegated prefixes
	Created   *metav1.Time `json:"created,omitempty"`
}

// Family is an ENI's own address with its subnet's mask, and the gateway.
type Family struct {
	Primary string `json:"primary,omitempty"`
	Gateway string `json:"gateway,omitempty"`
}

// Quarantined is an address that may be attached and must not be served: a late call may still take
// it away.
type Quarantined struct {
	Address string      `json:"address"`
	Until   metav1.Time `json:"until"`
}

// Reserved is an address that is not general: for a pod, or, without one, for a topology.
type Reserved struct {
	Address   string `json:"address"`
	Topology  string `json:"topology,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Cause is why the node can't have more.
type Cause struct {
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
	Until   *metav1.Time `json:"until,omitempty"` // when it is tried again
}

// StatusHandover is what the operator's calls may leave for the agent.
type StatusHandover struct {
	Tokens []string `json:"tokens,omitempty"`
}
