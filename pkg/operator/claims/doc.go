// Package claims decides what becomes of the addresses of topologies: which pod gets which one on its node, which claims are made, written
// and ended, what each node keeps for whom, and which calls bring an address or take it. Each decision about one claim is package topology's;
// here they are put together for a whole cluster.
//
// Nothing here calls a cloud or an API server, or reads a clock: a term of package operator tells what happens, asks what follows, and does it.
package claims

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
)

// Finalizer is what an AddressClaim has until its address is on no ENI.
const Finalizer = "enipool.io/address"

// Name is whose pods or StatefulSets are meant.
type Name struct{ Namespace, Name string }

// Pod is one that belongs to a topology.
type Pod struct {
	Name
	UID, Node, Topology string
	StatefulSet         topology.Workload
	Ended               bool       // it has succeeded or failed, or never ran; or it is on its node's network
	V4, V6              netip.Addr // that its kubelet shows, zero for none
}

// Event is a change of one object, as it is after it. It may come late and twice; the newest state comes in the end.
type Event struct {
	Pod      *Pod
	Claim    *crd.AddressClaim
	Topology *crd.PodSubnetTopology
	Deleted  bool

	Pods     *[]Pod // all there are, by a list that is not from a cache
	Complete bool   // all claims and topologies that there were have been told of
}

// Node is one as its object and the last describe have it.
type Node struct {
	Name, Zone  string
	Told        bool // this leader has described it, and its object says all that came of calls
	Serves      bool // calls may be made for it
	Gone        bool // its agent says nothing: deleted, not reached, or out of service
	MayMake     bool // it can have one more ENI
	Full        bool // by its limits it can't
	Places      int  // that are kept for pods of topologies, by its agent's configuration
	Created     int64
	ENIs        []ENI
	Reserved    []order.Reserved
	Releasing   map[netip.Addr]bool // accepted
	Published   map[netip.Addr]bool // no sandbox has it, by its agent's word
	Quarantined map[netip.Addr]bool
	Open        map[netip.Addr]bool // that a call is about which has not ended, or of which nobody knows how
	Crosses     bool                // its ENIs carry addresses of all subnets of its zone
	NoCross     string              // why they don't now though the cloud could, "" if it can't
	Yields      map[string]int      // by subnet: places on ENIs there that idle addresses of the pool leave, or could
}

// ENI is one that is attached.
type ENI struct {
	ID, Subnet string
	Addresses  []netip.Addr
	Primaries  []netip.Addr
	Blocks     []netip.Prefix
	Room       map[eni.Family]int // how many more addresses it can carry, 0 if it carries none now
}

// Orders are what is to be done for a node.
type Orders struct {
	Reserved []order.Reserved        // what its status is to say
	Seize    []netip.Addr            // accepted before its agent's word: nobody new gets it
	Assign   map[string][]netip.Addr // by ENI. The status says first for whom they are
	Take     map[string][]netip.Addr // by ENI, of what is accepted
	Move     map[string]Move         // by the ENI that gets them, from ENIs of other nodes that have accepted it
	Make     Make                    // an ENI
	Promised map[string]int          // by ENI: places that addresses are to take which are on their way, or to be ordered
	Yield    map[string]int          // by subnet: places on full ENIs there that idle addresses of the pool are to leave
}

// Move is what one ENI loses to another by one call.
type Move struct {
	Node, ENI string // that have them
	Addrs     []netip.Addr
}

// Make is an ENI that is to be made for pods of a topology, the zero Make for none.
type Make struct {
	Subnet, Topology string
	Serial           int64 // of the node's last ENI: with another one it has been made
}

// Write is a claim's next status.
type Write struct {
	Addr    netip.Addr
	Status  topology.Status
	Message string
}

// Waiting is a pod that has no address yet.
type Waiting struct {
	Pod  Pod
	Wait topology.Wait
}

// Steps are what follows from all that is known. They may be done in any order, and not at all: they follow again then.
type Steps struct {
	Writes  []Write
	Creates []topology.Claim
	Deletes []netip.Addr // of objects, which stay until their finalizer goes
	Forgets []netip.Addr // the finalizer goes
	Reads   []Name       // pods that are to be read, and not from a cache, before an address is taken without its agent's word
	Left    []Taken      // from ENIs of instances that have no Node any more
	Sets    bool         // which StatefulSets there are is to be listed
	Waits   []Waiting
	Nodes   map[string]Orders
	Next    time.Time // when to ask again though nothing changes, zero for not
}
