// Package order is the protocol between a node's agent and the cluster's operator. Both write one
// object for each node: the agent its Spec, the operator its Status, never both the same field. The
// agent decides how many slots the node needs and which addresses go back, because it knows the
// pods and the node cache; the operator decides where, when and in which order addresses come,
// because it knows the account.
//
// All of it is decisions: nothing here calls a cloud or an API server, or reads a clock. Both
// programs, and the tests' machine, run the same functions. DESIGN.md has the rules with their reasons.
package order

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// Mode is who calls the cloud for a node.
type Mode uint8

// The modes. A spec has the first or the last of them. Joining and Leaving are between: nobody calls.
const (
	Self     Mode = iota // its agent
	Joining              // the operator ends what the agent had begun
	Leaving              // the operator ends what it had begun itself
	Operator             // the operator
)

var modeNames = [...]string{Self: "Self", Joining: "Joining", Leaving: "Leaving", Operator: "Operator"}

// String returns the mode's name as the object has it.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Spec is what a node's agent asks for. An address is a host prefix in it, a delegated prefix stands for itself.
type Spec struct {
	Mode     Mode // Self or Operator
	Families []eni.Family
	Slots    int         // the target: general slots to have, without what stands in Release
	Waiting  int         // slots that pods wait for and for which nothing is free
	Pool     pool.Config // MaxAllocate within maxPods, see PoolFor; Scale is the agent's own affair

	Release           []netip.Prefix // in the node cache they are releasing: the operator may accept them
	ReleaseInterfaces []string       // ids of ENIs all of whose addresses stand in Release
	Held              []netip.Prefix // attached, and no pod can get them: others on the node use them
	NoLink            []string       // ids of ENIs that the node has no link for
	Idle              []string       // ids of burstable ENIs that pods use nothing of, where idle ones go back

	// Boot is the boot id of the node whose cache the lists tell of. A new one makes writes of before the boot too old to land.
	Boot         string
	SeenRevision int64 // highest Status.Revision in the head of the node cache, where that is above the status's
	SeenEpoch    int64 // of the status that the agent had read when it wrote last what goes back, 0 from one that does not say
}

// Status is what the operator tells a node.
type Status struct {
	Mode     Mode
	Revision int64 // grows with every change of what Content has
	Epoch    int64 // of the leader that wrote it last: leaders are numbered, none has the number of an earlier one
	Created  int64 // serial of the node's latest ENI

	Limits eni.Limits
	ENIs   []ENI // in the order in which they were made

	Releasing         []netip.Prefix // accepted: they go back, whatever happens
	LeavingInterfaces []string       // ids of ENIs whose deletion is accepted
	Quarantined       []Quarantined
	Reserved          []Reserved

	Leaders []Leader // the latest ones that wrote it, in their order: the last wrote it now
}

// Leader is one who wrote a status.
type Leader struct {
	Epoch int64
	First int64 // the Revision that it wrote first
}

// ENIState is how far an ENI is.
type ENIState uint8

// The states of an ENI. Only an attached one has addresses for pods.
const (
	Creating ENIState = iota
	Attached
	Detached
	ENILeaving // it is being detached and deleted
	Unknown    // of a later release: what pods have of it stays theirs, and nobody gets more
)

var eniStateNames = [...]string{Creating: "Creating", Attached: "Attached", Detached: "Detached", ENILeaving: "Leaving", Unknown: "Unknown"}

// String returns the state's name as the object has it.
func (s ENIState) String() string {
	if int(s) < len(eniStateNames) {
		return eniStateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ENI is an ENI of the node. What the agent needs of it is here, so that it asks nobody else.
type ENI struct {
	ID        string
	Index     int    // device index
	MAC       string // by which the node finds its link
	Subnet    string
	State     ENIState
	Said      string // the name of an Unknown state
	Token     string // that it was made with, "" if it was not made by the operator
	Topology  string // for whose pods alone it is, "" for all
	V4, V6    eni.Net
	Addresses []netip.Prefix // secondary ones
}

// HasInSubnet tells whether an address lies in the ENI's subnet. Another one is there on clouds that carry addresses across subnets.
func (e ENI) HasInSubnet(a netip.Addr) bool {
	net := e.V4
	if a.Is6() {
		net = e.V6
	}
	return net.IsValid() && net.Primary.Masked().Contains(a)
}

// Quarantined is an address that may be attached and must not be served: a late call may still take it away.
type Quarantined struct {
	Prefix netip.Prefix
	Until  time.Time // from then on a describe tells the truth about it
}

// Reserved is an address that is for no pod but those of a topology.
type Reserved struct {
	Addr      netip.Addr
	Topology  string
	Namespace string // of the pod that alone may have it
	Pod, UID  string // "" while no pod has a claim to it
}

// named tells whether a pod has a claim to the address.
func (r Reserved) named() bool { return r.Pod != "" || r.UID != "" }
