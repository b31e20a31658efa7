// Package cloud is what enipool needs of a cloud: the ENIs of one node, their
// addresses and the subnets they come from. Each cloud is a folder below; all of
// them pass cloudtest.Contract. DESIGN.md beside this file tells how to add one.
package cloud

import (
	"context"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Cloud acts for one node. Its methods may be called from several goroutines,
// but for one ENI only one at a time changes anything.
//
// What a method returns besides an error is true: addresses that came with an
// error are assigned. Errors are of type *Error and match one of the kinds in
// errors.go; after ErrUnknown the call may have had its effect, now or a little
// later, and Interfaces tells.
//
// A cloud's answers may lag: Interfaces may show, for some seconds, what was before
// others changed it. What calls of this Cloud have done it shows at once, and it never
// shows what has never been.
//
// Where Limits tell of blocks, addresses of the family come and go in whole
// blocks, such as delegated prefixes: Size addresses of one ENI whose first Bits
// bits are the same. All of a block's addresses are shown and returned one by one,
// as if they had come singly. Single addresses may stand beside blocks; one takes
// as much of the ENI's limit as a block.
type Cloud interface {
	// Limits returns what the node's instance may carry: of a family that comes
	// in blocks, how many addresses if all of them are in blocks. Where they say that
	// the node's own ENI gets none for pods, AssignAddresses there is ErrLimit.
	//
	// Where the cloud may not be asked or does not answer, a provider may return what
	// it has built in for the instance's type: that is the same, or Limits fail. What
	// is throttled fails: the answer will come.
	Limits(ctx context.Context) (eni.Limits, error)

	// Interfaces returns every ENI that is attached to the node, and those that
	// CreateInterface made for it and that are not attached (Index is -1), in
	// the order of their creation.
	Interfaces(ctx context.Context) ([]Interface, error)

	// Known returns what the last Interfaces did, with what calls have done since. It
	// asks nobody. Before the first Interfaces it is empty but for ENIs just made.
	Known() []Interface

	// Notes returns what calls have taken away lately, which a Cloud of a later
	// process can't know: its describes may still show it. It Recalls them before
	// its first call.
	Notes() Notes
	Recall(Notes)

	// Subnets returns the subnets that new ENIs of the node may lie in, and
	// those that its ENIs lie in, sorted by ID.
	Subnets(ctx context.Context) ([]Subnet, error)

	// CreateInterface makes an ENI, attaches it to the node and returns it when
	// pods can use its addresses. All of it succeeds or, unless the error is
	// ErrUnknown, nothing is left. Fewer addresses than asked for are not an
	// error where the subnet has no more than that, or too few whole blocks; one
	// at least of each family that was asked for is there.
	//
	// Calls with the same token make one ENI, whatever happened to the calls
	// before: the later one finishes what the earlier began.
	CreateInterface(ctx context.Context, c Create) (Interface, error)

	// AssignAddresses puts up to n more secondary addresses of the family on
	// the ENI and returns those it put, of which there may be some together with
	// an error. Fewer than n without an error are all that the cloud had, which
	// are some: none at all is ErrSubnetFull.
	// ErrNotFound: there is no such ENI on this node.
	//
	// Where addresses come in blocks, n/Size blocks come, and single addresses
	// for the rest of n, and for a block where the subnet has no whole one. It is
	// the same with CreateInterface.
	AssignAddresses(ctx context.Context, id string, f eni.Family, n int) ([]netip.Addr, error)

	// UnassignAddresses takes secondary addresses from the ENI. What the ENI
	// does not have is fine, and so is an ENI that does not exist. After
	// ErrUnknown some may be gone, after another error none is; asking again is
	// safe. An ENI that another node has by now keeps all of them, without an error
	// or with ErrNotFound.
	//
	// A block goes as a whole: a part of one is refused with ErrForbidden, and
	// nothing is done.
	UnassignAddresses(ctx context.Context, id string, addrs []netip.Addr) error

	// DeleteInterface detaches and deletes an ENI that CreateInterface made,
	// with all its addresses. One that does not exist is fine. Others, the
	// node's own above all, are refused with ErrForbidden. ErrNotFound: others have put
	// addresses on it since the last Interfaces.
	DeleteInterface(ctx context.Context, id string) error
}

// Notes are addresses and ENIs that calls have taken away lately.
type Notes struct {
	Gone    map[string][]netip.Addr `json:"gone,omitempty"` // by ENI; of "" on whichever
	Deleted []string                `json:"deleted,omitempty"`

	// Begun are tokens of CreateInterface calls whose outcome nobody has noted: their ENIs
	// may not show yet. A Cloud does not know them. Who Recalls does, since a token is
	// written down before it is used.
	Begun []string `json:"-"`

	// Listed is how many ENIs the cloud told of when the node looked for what its cluster left behind:
	// that takes as many requests as it takes pages, and agents that restart together go by it.
	Listed int `json:"listed,omitempty"`
}

// Interface is an ENI as the cloud shows it.
type Interface struct {
	ID        string
	Index     int    // device index; 0 is the node's own ENI, -1 not attached
	MAC       string // lower case, with colons
	Subnet    string // its ID
	V4, V6    eni.Net
	Addresses []netip.Addr   // secondary ones, sorted
	Pods      []netip.Prefix `json:",omitempty"` // ranges of their own that Addresses come from, none: those of V4 and V6
	Ours      bool           // CreateInterface made it for this node
	Token     string         // that it was made with, "" if not ours
	Created   time.Time      // or attached, where the cloud tells no more

	// Partial are the delegated prefixes of which only some addresses are among Addresses, by
	// the Limits of now, sorted: a pod may have another since the Limits of earlier.
	Partial []netip.Prefix `json:",omitempty"`

	// CrossSubnet are the secondary addresses that lie in other subnets, sorted. A Region's
	// AssignExactly has put them there for certain pods: they take room of the ENI, and are
	// none of the pool's. UnassignAddresses takes them, too.
	CrossSubnet []netip.Addr `json:",omitempty"`
}

// Net returns the interface's place in the family's subnet.
func (i Interface) Net(f eni.Family) eni.Net {
	if f == eni.IPv4 {
		return i.V4
	}
	return i.V6
}

// Subnet is a subnet with the room that is left in it.
type Subnet struct {
	ID    string
	V4Net netip.Prefix // invalid if it has no IPv4
	V6Net netip.Prefix // invalid if it has no IPv6
	Free  int          // addresses that are left for pods, of the scarcer family
	New   bool         // new ENIs of the node may lie in it

	// Free may leave out ranges that are reserved for blocks: less than a block left
	// does not mean that none comes. Only a call tells.
	Reserves bool
}

// Create is a wish for a new ENI.
type Create struct {
	Token  string // the same for each attempt at the same ENI; at most 64 bytes
	Subnet string // ID
	V4, V6 int    // secondary addresses to begin with
}

// Sizer is a Cloud that knows the limits without a call, once Limits have told them. They
// are those after the last Interfaces: ENIs that it leaves out, which take room, come
// and go, and blocks may be left of what the configuration no longer asks for.
type Sizer interface{ LimitsNow() eni.Limits }

// Quarantined is an ENI of the node, or an address or a range of one, that Interfaces leaves out
// because what the cloud tells of it can't be right.
type Quarantined struct {
	ID      string     // of the ENI, "" where the cloud tells none
	Address netip.Addr // left out alone while its ENI is shown, invalid where it is the ENI
	Subnet  string     // one of whose ranges for pods is left out alone, or taken for another; "" where it is the ENI
	Why     string     // without secrets
}

// Quarantiner is a Cloud that tells what its last Interfaces left out, sorted by ID.
type Quarantiner interface{ Quarantined() []Quarantined }
