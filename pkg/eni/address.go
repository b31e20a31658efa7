package eni

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"
)

// State is what an address of the pool is doing.
type State uint8

// The states of an address. Cooling turns into free by itself when the node's
// cool-down has passed; no write is needed for that.
const (
	Free      State = iota // nobody's; may be handed out
	Used                   // a pod's
	Cooling                // a pod's until a moment ago: peers may still know it
	Releasing              // on its way back to the cloud: not handed out again
	Held                   // held by others: the node's kernel has something for it that is not enipool's
	Reserved               // kept for the pod that its Reservation names, or for one that is to come
)

var stateNames = [...]string{Free: "free", Used: "used", Cooling: "cooling", Releasing: "releasing", Held: "held", Reserved: "reserved"}

// String returns the state's name as the node cache and the tables show it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of State.String.
func ParseState(name string) (State, error) {
	for s, n := range stateNames {
		if n == name {
			return State(s), nil
		}
	}
	return 0, fmt.Errorf("unknown address state %q", name)
}

// Kind is how an owner came by its address; it tells what the kernel holds
// for it.
type Kind uint8

// The kinds of attachment.
const (
	Veth      Kind = iota // first in the chain: our veth pair
	Chained               // another plugin's interface that we put the address on
	Delegated             // given to another plugin as its IPAM; we touch no interface
)

var kindNames = [...]string{Veth: "veth", Chained: "chained", Delegated: "ipam"}

// String returns "veth", "chained" or "ipam".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of Kind.String.
func ParseKind(name string) (Kind, error) {
	for k, n := range kindNames {
		if n == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown attachment kind %q", name)
}

// Key is the identity of an attachment: one interface of one sandbox on one
// network. Pod names are no identity: two sandboxes of one pod may overlap.
type Key struct {
	Network   string
	Container string
	IfName    string
}

// String returns network/container/ifname.
func (k Key) String() string { return k.Network + "/" + k.Container + "/" + k.IfName }

// Owner is an attachment that holds an address. Only the Key is identity; the
// rest says where the sandbox is and helps people.
type Owner struct {
	Key
	Kind       Kind
	Netns      string // path of the sandbox's network namespace, "" if not known
	NetnsInode uint64 // its inode when the address was given, 0 if not known
	Namespace  string // of the pod
	Pod        string
	UID        string
}

// PodName returns namespace/pod, or the sandbox's id where no pod is known.
func (o Owner) PodName() string {
	switch {
	case o.Pod == "":
		return cmp.Or(o.Container, "-")
	case o.Namespace == "":
		return o.Pod
	}
	return o.Namespace + "/" + o.Pod
}

// Address is one address of the pool.
type Address struct {
	Addr  netip.Addr
	ENI   int           // index of the Interface it is assigned to
	State State         //
	Since time.Duration // when it got into State, as time since boot
	Owner *Owner        // of a used address, else nil; never changed in place
	// Lost: the cloud took a used address away behind the node's back. Its pod
	// keeps it, because nothing better can be done; nobody gets it again.
	Lost bool
	// HeldBy says in the words of ip(8) what holds an address that is Held, "" where
	// nobody knows any more.
	HeldBy string
	// Reservation is whose a Reserved address is. A used address with one is claimed: with the end of
	// its pod it is Reserved again, never anybody's, unless it was set aside (IsSetAside): then it is any pod's after the cool-down.
	// A Releasing one with it was kept until it was withdrawn. Never changed in place.
	Reservation *Reservation
}

// IsSetAside tells whether it is one of the addresses for any pod that a certain pod is to have, or has: it counts as used from then on.
func (a Address) IsSetAside() bool { return a.Reservation != nil && a.Reservation.IsGeneral() }

// IsClaimed tells whether a pod has an address that was kept for it.
func (a Address) IsClaimed() bool { return a.State == Used && a.Reservation != nil && !a.IsSetAside() }

// IsKept tells whether it is kept for a pod, that has it or is to have it: general pods neither get it nor need less by it.
func (a Address) IsKept() bool { return a.State == Reserved && !a.IsSetAside() || a.IsClaimed() }

// HasMoved tells whether the cloud took away an address that is kept for a pod: the pod's successor has it on another node,
// and what this node sends there must not end at the pod that still runs here.
func (a Address) HasMoved() bool { return a.Lost && a.IsClaimed() }

// Family returns the address's family.
func (a Address) Family() Family { return FamilyOf(a.Addr) }

// Prefix returns the address as a host prefix, /32 or /128.
func (a Address) Prefix() netip.Prefix { return netip.PrefixFrom(a.Addr, a.Addr.BitLen()) }
