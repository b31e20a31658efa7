// Package driver is what the engine needs of a cloud: the half-operations that its API
// really has, and what is peculiar to it. A driver knows wire facts only: how a call is
// written, what an answer says, what an error code means. It keeps no memory of ENIs and
// has no policy: it never looks before it calls, never repeats a change, never undoes
// one. All of that is pkg/cloud/engine's, the same for every cloud.
package driver

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Driver is one account and region of a cloud, as one caller sees it. Its methods may be
// called from several goroutines. Errors are of type *Error; a method that changes
// something makes one request that does, which had no effect unless the kind is
// cloud.ErrUnknown. Only where that request must hold the whole object, with a fingerprint of
// what it replaces, another one reads it before: then no later change gets lost.
type Driver interface {
	// Traits tell what is peculiar to the cloud. They never change.
	Traits() Traits

	// Self returns the instance that this process runs on.
	Self(ctx context.Context) (Self, error)

	// Shape returns what the instance may carry.
	Shape(ctx context.Context, s Self) (Shape, error)

	// Shapes returns what instances of the types may carry, where Traits.Types, for as many in a
	// request as the cloud takes. Types that it does not have are left out.
	Shapes(ctx context.Context, types []string) (map[string]Shape, error)

	// Alive returns what became of the instances, also with an error about others, which it
	// leaves out. Gone are those alone that surely exist no longer.
	Alive(ctx context.Context, instances []string) (map[string]cloud.State, error)

	// Subnets returns the subnets that the filter selects, with the room in them.
	Subnets(ctx context.Context, f SubnetFilter) ([]Subnet, error)

	// Interfaces returns the ENIs that the filter selects, from all pages. What it
	// returns may lag behind what has happened, and two calls differently.
	Interfaces(ctx context.Context, f Filter) ([]Interface, error)

	// Page returns one page of the ENIs that the scan selects, by one request. PageLost:
	// the page before ended at an ENI that is gone, and only the first page can be had.
	Page(ctx context.Context, s Scan) (Page, error)

	// Create makes an ENI that is attached nowhere. Where the answer does not
	// describe it, its ID is all that is set. The token makes a repetition lead to
	// the same ENI; with other parameters it is refused, TokenReused.
	Create(ctx context.Context, c Create) (Interface, error)

	// Attach begins to attach the ENI and returns the attachment's ID, "" where the
	// cloud has no such thing.
	Attach(ctx context.Context, a Attach) (attachment string, err error)

	// Bind lets an attached ENI be deleted with its instance, where Traits.Binds.
	Bind(ctx context.Context, id, attachment string) error

	// Detach begins to detach the ENI.
	Detach(ctx context.Context, i Interface, token string) error

	// Delete deletes an ENI that is attached nowhere.
	Delete(ctx context.Context, id, token string) error

	// Assign puts addresses on the ENI and returns what the answer names. Of addresses by
	// name it puts all or none. AddressTaken: another ENI, or the cloud, has one of them, and
	// it was not told to take it, or can't, as a primary one.
	// Whether one that this ENI has is taken the cloud says as it likes.
	Assign(ctx context.Context, a Assign) (Assigned, error)

	// Unassign takes addresses or blocks of one family from the ENI.
	// NoSuchAddress: it lacks one of them, and nothing has happened.
	Unassign(ctx context.Context, u Unassign) error

	// Rewrite replaces the mark of an ENI, where Traits.MarksV6.
	Rewrite(ctx context.Context, id string, m Mark, token string) error

	// SetGroups replaces the security groups of an ENI.
	SetGroups(ctx context.Context, id string, groups []string, token string) error

	// Reserve keeps a range of a subnet for addresses by name, where Traits.Keeps, and returns
	// the reservation's ID. Addresses in it that somebody has stay his. A range that overlaps
	// one that is reserved, or is out of the subnet, is refused, and nothing happens.
	Reserve(ctx context.Context, r Reservation) (id string, err error)

	// Unreserve ends a reservation, where Traits.Keeps. Whoever has addresses of it keeps them.
	Unreserve(ctx context.Context, id string) error

	// Reservations returns those of a subnet, where Traits.Keeps, from all pages.
	Reservations(ctx context.Context, subnet string) ([]Reservation, error)
}

// Prober is a Driver that can find out more than its methods tell: whether calls are
// permitted, whether security groups exist. It changes nothing.
type Prober interface {
	Probe(ctx context.Context, p Probe) []cloud.Finding
}

// Probe is what a Prober looks at.
type Probe struct {
	Self   Self
	VPC    string
	Groups []string // of new ENIs
	// Any is an ENI of the instance: one that was made for it, or else its primary one.
	Any     Interface
	Cluster string // that new ENIs are marked with
	IPv6    bool   // pods have IPv6
}

// Clocked is a Driver that knows how far the machine's clock is ahead of the cloud's, by
// the last answer.
type Clocked interface {
	Skew() (ahead time.Duration, known bool)
}

// Self is an instance, as its metadata or the configuration tell.
type Self struct {
	Instance string // its ID
	Type     string // "" if nothing tells
	Region   string
	Zone     string // "" if nothing tells
	VPC      string // "" if nothing tells
}

// Shape is what an instance may carry.
type Shape struct {
	Type string
	ENIs int // attached at once, of all kinds and on all network cards, its primary ENI among them
	// Cards are how many ENIs each network card may have; nil: there is one card.
	Cards []int
	V4    int // IPv4 addresses or prefixes an ENI, its primary among them
	V6    int // IPv6 addresses an ENI, its primary among them; 0: none
	// Prefixes tells that the instance takes delegated prefixes.
	Prefixes bool
	// Guessed tells that V4 and V6 are rules of thumb: the cloud may refuse less.
	Guessed bool
	// NoPrimary tells that pods can't use further addresses of the primary ENI,
	// PrimaryAlone that they can only where it is the one ENI that the instance may have.
	NoPrimary, PrimaryAlone bool
	// Builtin tells that it comes from a table, because the cloud did not answer: why.
	Builtin error
}

// SubnetFilter selects the subnets with one of the IDs and, where there are Tags, those
// of the VPC that have all of them.
type SubnetFilter struct {
	IDs  []string
	VPC  string
	Tags map[string]string
}

// Selects tells whether the filter selects a subnet of its VPC, for clouds that list all of those.
func (f SubnetFilter) Selects(s Subnet) bool {
	for key, value := range f.Tags {
		if got, has := s.Tags[key]; !has || got != value {
			return slices.Contains(f.IDs, s.ID)
		}
	}
	return len(f.Tags) > 0 || slices.Contains(f.IDs, s.ID)
}

// Subnet is a subnet as the cloud describes it.
type Subnet struct {
	ID, VPC, Zone      string
	V4, V6             netip.Prefix // invalid if it has none
	Gateway4, Gateway6 netip.Addr
	// Pods are ranges of their own that further addresses of ENIs come from, as GCP's
	// secondary ranges and Azure's pod subnets; none: those are in V4 and V6.
	Pods  []netip.Prefix
	Free  int // IPv4 addresses that are left for pods, below 0 if the cloud does not count
	Ready bool
	Tags  map[string]string
	Wrong string // why what the cloud tells can't be right; then only ID counts
}

// Filter selects ENIs by one of its fields.
type Filter struct {
	// Attached: to this instance, or on their way to or from it; its primary ENI among
	// them. It may be another than this process's own: its Type tells, where that matters,
	// which service of the cloud has it.
	Attached Self
	Made     string   // with a mark for this instance, attached or not
	Token    string   // with Made: with this token in the mark
	IDs      []string // with these IDs
	Loose    string   // with a mark of this cluster, attached nowhere

	// Listed is set to how many ENIs the cloud told of, unless it is nil or the cloud itself selects.
	Listed *int `json:"-"`
}

// State is where an ENI is on its way.
type State uint8

// The states. Absent is for attachments that are no more.
const (
	Loose     State = iota // made, and attached nowhere
	Pending                // the cloud is still making it
	Attaching              // on its way to the instance
	Attached               // in use
	Detaching              // on its way off
)

// Interface is an ENI as the cloud describes it.
type Interface struct {
	ID, MAC           string
	Subnet, VPC, Zone string
	Groups            []string
	State             State
	Instance          string    // that it is attached to, or on its way to or from, "" if none
	Attachment        string    // its ID, "" where the cloud has no such thing
	Index, Card       int       // at the instance; Index is -1 where the cloud tells none
	Outlives          bool      // it stays when the instance goes, where Traits.Binds
	Created           time.Time // or attached, where the cloud tells no more; the zero Time if neither
	Primary           bool      // the ENI that the instance was born with
	Mark              Mark      // the zero Mark if it has none of ours
	// Unmanaged tells why pods can't use the ENI and nobody here may touch it, "" if they can.
	Unmanaged string

	V4, V6  netip.Addr     // primary addresses; invalid if it has none or the cloud does not tell which it is
	Singles []netip.Addr   // the other addresses
	Blocks  []netip.Prefix // delegated prefixes
	Wrong   string         // why what the cloud tells can't be right, "" if it can
}

// Mark is what we write on an ENI that we make, in tags or in its description.
type Mark struct {
	Instance string    // that it was made for
	Token    string    // of the intent
	Asked    time.Time // by the clock of the node
	Cluster  string
	Index    int        // where the cloud has no device indexes
	V6       netip.Addr // its primary IPv6 address, where the cloud does not tell
}

// Ours tells whether the ENI was made for the instance.
func (m Mark) Ours(instance string) bool { return m.Token != "" && m.Instance == instance }

// Count is how many addresses of a family a call asks for: blocks, or single ones.
type Count struct {
	Blocks, Singles int
}

// Create is a new ENI.
type Create struct {
	Self   Self
	Subnet string
	Groups []string
	Mark   Mark
	Tags   map[string]string
	// V4, V6 are addresses besides the primary ones, where Traits.CreateFills. The driver
	// leaves out what its one request can't hold; the answer tells what the ENI has.
	V4, V6 Count
	IPv6   bool // it gets a primary IPv6 address
	Named6 bool // and says which of its addresses that is
	Token  string
}

// Attach is where an ENI goes.
type Attach struct {
	ID, Instance string
	Index, Card  int // of no meaning where Traits.NoIndex
	Token        string
}

// Assign is addresses for an ENI: single ones, blocks or, where Traits.Exact, the Addresses
// that it names, in place of Count.
type Assign struct {
	On        Interface // ID, Primary and Instance count
	Family    eni.Family
	Count     Count
	Addresses []netip.Addr
	Subnet    string // that the Addresses lie in, where Traits.CrossSubnet, "": the ENI's
	Take      bool   // the Addresses, from whichever ENI has them as secondary ones, where Traits.Moves
	Token     string // where Traits.AssignTokens
}

// Assigned is what the answer to an Assign names: all addresses in it are of the family,
// those of blocks not among them. It may name more than is new.
type Assigned struct {
	Addresses []netip.Addr
	Blocks    []netip.Prefix
}

// Reservation is a range of a subnet whose addresses nobody gets unasked.
type Reservation struct {
	ID, Subnet string
	Range      netip.Prefix
	Note       string // what we wrote on it
	Blocks     bool   // delegated prefixes come from it, where Traits.Reserves; addresses by name do not
}

// Unassign is addresses that an ENI loses: Addresses, or Blocks.
type Unassign struct {
	On        Interface // ID, Primary and Instance count
	Family    eni.Family
	Addresses []netip.Addr
	Blocks    []netip.Prefix
	Token     string
}
