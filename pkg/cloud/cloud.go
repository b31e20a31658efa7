// Package cloud has the interfaces between enipool and clouds: Cloud is for one node, with its
// ENIs, their addresses and the subnets that these come from; Region is for many nodes. Each
// cloud is a folder below; all of them pass cloudtest.Contract. DESIGN.md beside this file says
// how to add one.
package cloud

import (
	"context"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Cloud acts for one node. Its methods may be called from several goroutines, but at any time
// only one of them may change the same ENI.
//
// What a method returns besides an error is true: addresses that it returns with an error are
// assigned. Errors are of type *Error and match one of the kinds in errors.go. After ErrUnknown
// the call may have its effect, now or a little later; Interfaces shows whether it has.
//
// A cloud's answers may lag: for some seconds, Interfaces may show the state before others
// changed it. What calls of this Cloud have done it shows at once, and it never shows a state
// that never was.
//
// If Limits have blocks, addresses of the family come and go in whole blocks, such as delegated
// prefixes: Size addresses of one ENI whose first Bits bits are the same. All of a block's
// addresses are shown and returned one by one. There may be single addresses besides blocks; each
// takes as much of the ENI's limit as a block.
type Cloud interface {
	// Limits returns what the node's instance may carry: for a family that comes in blocks, how
	// many addresses if all of them are in blocks. If NoPrimary is set, AssignAddresses on the
	// primary ENI fails with ErrLimit.
	//
	// If the call is not allowed or the cloud does not answer, a provider may return what it has
	// built in for the instance type, if that is the same. If the call is throttled, Limits fails:
	// the cloud will answer later.
	Limits(ctx context.Context) (eni.Limits, error)

	// Interfaces returns every ENI that is attached to the node, and those that
	// CreateInterface made for it and that are not attached (Index is -1), in
	// the order of their creation.
	Interfaces(ctx context.Context) ([]Interface, error)

	// Known returns what the last Interfaces did, corrected by calls since. It makes no call. Before
	// the first Interfaces it has only ENIs that were just made.
	Known() []Interface

	// Notes returns what calls have removed lately: describes may still show it to the Cloud of a
	// later process, which therefore has to Recall the notes before its first call.
	Notes() Notes
	Recall(Notes)

	// Subnets returns the subnets that new ENIs of the node may lie in, and
	// those that its ENIs lie in, sorted by ID.
	Subnets(ctx context.Context) ([]Subnet, error)

	// CreateInterface makes an ENI, attaches it to the node and returns it when pods can use its
	// addresses. If it fails, nothing is left, unless the error is ErrUnknown. It is no error if
	// the ENI has fewer addresses than were asked for because the subnet has no more, or too few
	// whole blocks; but it has at least one of each family that was asked for.
	//
	// Calls with the same token make one ENI: each finishes what those before it have begun.
	CreateInterface(ctx context.Context, c Create) (Interface, error)

	// AssignAddresses puts up to n more secondary addresses of the family on the ENI and returns
	// those, some of them perhaps together with an error. If there are fewer than n without an
	// error, the cloud had no more; none at all is ErrSubnetFull. ErrNotFound: this node has no such ENI.
	//
	// If addresses come in blocks, n/Size blocks come, and single addresses for the rest of n and
	// in the place of blocks that the subnet does not have. The same holds for CreateInterface.
	AssignAddresses(ctx context.Context, id string, f eni.Family, n int) ([]netip.Addr, error)

	// UnassignAddresses takes secondary addresses from the ENI. Addresses that the ENI does not have
	// are no error, nor is an ENI that does not exist. After ErrUnknown some may be gone, after
	// another error none is; repeating the call is safe. An ENI that another node has by now keeps
	// all of them, without an error or with ErrNotFound.
	//
	// A block goes as a whole: a call for a part of one is refused with ErrForbidden, and changes
	// nothing.
	UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error

	// DeleteInterface detaches and deletes an ENI that CreateInterface made, with all its
	// addresses. One that does not exist is no error. Any other ENI, such as the primary one, is
	// refused with ErrForbidden. ErrNotFound: others have put addresses on it since the last
	// Interfaces.
	DeleteInterface(ctx context.Context, id string) error
}

// Notes are addresses and ENIs that calls have removed lately, for the Cloud of the next process.
type Notes struct {
	Gone    map[string][]netip.Addr `json:"gone,omitempty"` // by the ENI's ID; "" if the ENI is not known
	Deleted []string                `json:"deleted,omitempty"`

	// Begun are tokens of CreateInterface calls of which no outcome is on disk: describes may not
	// show their ENIs yet. Notes() leaves it empty; whoever calls Recall fills it in, because it
	// writes a token to disk before it uses it.
	Begun []string `json:"-"`

	// Limits is what the instance can carry as an earlier process was told, the zero Limits if nobody knows. It counts until
	// Limits is called. Notes() leaves it empty.
	Limits eni.Limits `json:"-"`

	// Listed is how many ENIs the last sweep was told of. A sweep takes a request per page of them,
	// so agents that restart together wait for their first sweep according to it.
	Listed int `json:"listed,omitempty"`
}

// Interface is an ENI as the cloud shows it.
type Interface struct {
	ID        string
	Index     int    // device index; 0 is the primary ENI, -1 not attached
	MAC       string // lower case, with colons
	Subnet    string // its ID
	V4, V6    eni.Net
	Addresses []netip.Addr   // secondary ones, sorted
	Pods      []netip.Prefix `json:",omitempty"` // separate ranges that Addresses come from; none: the ranges of V4 and V6
	Ours      bool           // CreateInterface made it for this node
	Token     string         // of that call, "" if not ours
	Cluster   string         `json:",omitempty"` // that it is tagged with, "" if not ours or without one
	Created   time.Time      // when it was attached, if the cloud only tells that

	// Partial are the delegated prefixes of which only some addresses are in Addresses, by the
	// present Limits, sorted. A pod may have another address of one, from a time of other Limits.
	Partial []netip.Prefix `json:",omitempty"`

	// CrossSubnet are secondary addresses of other subnets, sorted. A Region's AssignExactly has put
	// them there for certain pods: they take room of the ENI, but are not the pool's.
	// UnassignAddresses takes them too.
	CrossSubnet []netip.Addr `json:",omitempty"`
}

// Net returns the interface's primary address of the family with its subnet.
func (i Interface) Net(f eni.Family) eni.Net {
	if f == eni.IPv4 {
		return i.V4
	}
	return i.V6
}

// Subnet is a subnet with its room.
type Subnet struct {
	ID    string
	V4Net netip.Prefix // invalid if it has no IPv4
	V6Net netip.Prefix // invalid if it has no IPv6
	Free  int          // addresses left for pods, of the scarcer family
	New   bool         // new ENIs of the node may lie in it

	// Reserves: Free may leave out ranges that are reserved for blocks. If less than a block is free,
	// one may come nevertheless; only a call tells.
	Reserves bool
}

// Create describes a new ENI.
type Create struct {
	Token  string // the same for each attempt at the same ENI; at most 64 bytes
	Subnet string // ID
	V4, V6 int    // secondary addresses to begin with
}

// Sizer is a Cloud that knows the limits without a call, after the first Limits. They change with
// each Interfaces: ENIs that it leaves out take room, and come and go; and blocks may be left from
// before the configuration turned prefixes off.
type Sizer interface{ LimitsNow() eni.Limits }

// Quarantined is an ENI of the node, or one address or range of an ENI, that Interfaces leaves out
// because what the cloud tells about it can't be right.
type Quarantined struct {
	ID      string     // of the ENI, "" if the cloud tells none
	Address netip.Addr // only this address is left out; invalid if it is the whole ENI
	Subnet  string     // only a range for pods of this subnet is left out, or corrected; "" if it is the whole ENI
	Why     string     // without secrets
}

// Quarantiner is a Cloud that tells what its last Interfaces left out, sorted by ID.
type Quarantiner interface{ Quarantined() []Quarantined }
