// Package pool plans how a node gets the addresses of its target: which ENI gets more,
// which addresses are released, in what order and why. It is pure: a plan is made of a snapshot and a target, from scratch each
// time and never from an earlier plan, so that nothing can drift.
//
// The unit of a target is the slot: what one pod needs, an address of each of the
// node's families on one ENI.
package pool

import (
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/scale"
)

// Mode is how a node holds addresses ready.
type Mode uint8

// The modes. Batch sizes the pool by the scaling equation. Burstable fills an ENI
// completely when it is made and releases it only as a whole. BestEffort keeps
// a number of free addresses between watermarks.
const (
	Batch Mode = iota
	Burstable
	BestEffort
)

// Config is how a node's addresses are planned.
type Config struct {
	Mode  Mode
	Scale scale.Config // in mode batch as it is; the other modes derive theirs from it

	FirstENI       int // lowest device index whose addresses may be for pods: 0 or 1; see FirstIndex
	MaxAllocate    int // most slots on the node, 0 for no limit but those of the instance
	MaxAllocateENI int // most ENIs for pods, 0 for no limit but that of the instance
	MaxIPsPerENI   int // most addresses of a family on an ENI, its primary among them, 0 for no limit but that of the instance
	PreAllocateENI int // ENIs for pods that are made before pods need them
	TopologyPlaces int // places for addresses that no slot takes: they are kept for pods of topologies

	Multiple   int  // burstable: full idle ENIs to keep, burstableMehrfachENI; at least 1
	Partial    bool // burstable: make an ENI even where the subnet can't fill it
	ReturnENIs bool // burstable: delete the newest ENIs if they are idle

	MinAllocate       int // best effort: slots that there are at least
	PreAllocate       int // best effort: free slots to keep
	MaxAboveWatermark int // best effort: free slots beyond PreAllocate before any is released
}

// Snapshot is all that a plan is made from.
type Snapshot struct {
	Families  []eni.Family
	Limits    eni.Limits
	ENIs      []ENI     // attached and in the node state, in its order: oldest first
	Unmanaged int       // unmanaged ENIs on the instance: they only take room
	Pending   []Pending // ENIs being made
	Subnets   []Subnet
	NoNew     Cause // why no new ENI is asked for now, whichever subnet; no kind if one may be
	MaxPods   int   // pods the node may run, 0 if not known: nobody can use more slots
	Cooling   int   // slots that there may be beyond MaxPods: the most that cooled down at once lately, which serve no pod meanwhile
	Needed    int   // slots that pods need now: what a plan brings beyond them is spare
	KeptENIs  int   // ENIs that are left to be made for pods of topologies: on clouds where an ENI has addresses of its own subnet alone
}

// ENI is an ENI with its addresses.
type ENI struct {
	ID        string
	Index     int // device index
	Subnet    string
	Addresses []Address // secondary ones, in the order of the node state
	Coming    []Coming  // addresses being assigned
	Busy      bool      // a call about it is under way or of unknown outcome: no new one now
	NoMore    Cause     // it refused addresses lately: no new ones now; no kind if it may get some
	Stays     bool      // it refused to release addresses lately: none are released now
	Leaving   bool      // its deletion has begun and can't be undone
	Keep      bool      // not made by us: never deleted
	Promised  int       // places on it that addresses for pods of topologies are to take: no slot does meanwhile
	NoLink    bool      // the node has no link for it: pods can't use it, no new addresses
	Device    string    // of NoLink: the name of the link that is missing
}

// Address is an address of the node state. One that has cooled down is Free here.
type Address struct {
	eni.Address
	Committed bool // its release has begun and can't be undone
}

// Coming is how many addresses of a family are being assigned.
type Coming struct {
	Family eni.Family
	Count  int
}

// Pending is an ENI that is being made, with the slots it will have.
type Pending struct {
	Subnet string
	Slots  int
}

// Subnet is where addresses come from.
type Subnet struct {
	ID      string
	Free    int   // addresses left
	New     bool  // new ENIs may lie in it
	Blocked Cause // it refused addresses lately and is not asked now; no kind if it may be
	NoNew   Cause // it refused a new ENI lately: those that are there get addresses
	Spared  bool  // others wait for what it has, and the node can have more elsewhere: it gives what pods need and nothing else does
	Keep    int   // if Spared: slots of the node that stay there, whether its pods need them or not
}

// Action is the kind of a step.
type Action uint8

// The actions, in the order in which a plan has them. Restore undoes a release that has not
// begun.
const (
	Restore Action = iota
	Assign
	Create
	Release
	Delete
)

var actionNames = [...]string{Restore: "restore", Assign: "assign", Create: "create", Release: "release", Delete: "delete"}

// String returns the action's name in logs and metrics.
func (a Action) String() string { return actionNames[a] }

// Step is one thing to do.
type Step struct {
	Do     Action
	ENI    string       // ID; "" for create
	Index  int          // of the ENI; -1 for create
	Subnet string       // of the ENI
	Family eni.Family   // of assign
	Count  int          // assign: addresses; create: slots
	V4, V6 int          // create: addresses of the families; what comes in blocks may be more than the slots
	Addrs  []netip.Addr // of restore and release
	Spare  bool         // of assign and create: pods need nothing of what it brings
	Reason string       // why, for people
}
