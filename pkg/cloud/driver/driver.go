// Package driver is what the engine needs of a cloud: the half-operations that its API has, and
// how it differs from other clouds. A driver only knows how a call is written, what an answer
// says, and what an error code means. It keeps no memory of ENIs and has no policy: it never
// describes before it calls, never repeats a change, never undoes one. pkg/cloud/engine does
// that, in the same way for every cloud.
package driver

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
)

// Driver is one account and region of a cloud, as one caller sees it. Its methods may be called
// from several goroutines. Errors are of type *Error. A method that changes something makes only
// one request that does; if it fails, the request had no effect, unless the kind is
// cloud.ErrUnknown. If such a request must hold the whole object, with a fingerprint of the
// version that it replaces, the method reads that before, so that no other change gets lost.
type Driver interface {
	// Traits say how the cloud differs from others. They never change.
	Traits() Traits

	// Self returns the instance that this process runs on.
	Self(ctx context.Context) (Self, error)

	// Shape returns what the instance may carry.
	Shape(ctx context.Context, s Self) (Shape, error)

	// Shapes returns what instances of the types may carry, if Traits.Types, for as many types per
	// request as the cloud takes. It leaves out types that the cloud does not have.
	Shapes(ctx context.Context, types []string) (map[string]Shape, error)

	// Alive returns the states of the instances, some perhaps together with an error about others,
	// which it leaves out. An instance is Gone only if it surely no longer exists.
	Alive(ctx context.Context, instances []string) (map[string]cloud.State, error)

	// Subnets returns the subnets that the filter selects, with their room.
	Subnets(ctx context.Context, f SubnetFilter) ([]Subnet, error)

	// Interfaces returns the ENIs that the filter selects, from all pages. The answer may lag, and
	// a later one may lag more.
	Interfaces(ctx context.Context, f Filter) ([]Interface, error)

	// Page returns one page of the ENIs that the scan selects, by one request. PageLost: the page
	// can't be had, because an ENI by which the cloud finds it is gone; begin with the first page.
	Page(ctx context.Context, s Scan) (Page, error)

	// Create makes an ENI that is attached nowhere. If the answer does not describe the ENI, only
	// the ID is set. A repetition with the same token returns the same ENI; with other parameters
	// it is refused, TokenReused.
	Create(ctx context.Context, c Create) (Interface, error)

	// Attach begins to attach the ENI and returns the attachment's ID, "" if the cloud has none.
	Attach(ctx context.Context, a Attach) (attachment string, err error)

	// Bind makes the cloud delete an attached ENI with its instance, if Traits.Binds.
	Bind(ctx context.Context, id, attachment string) error

	// Detach begins to detach the ENI.
	Detach(ctx context.Context, i Interface, token string) error

	// Delete deletes an ENI that is attached nowhere.
	Delete(ctx context.Context, id, token string) error

	// Assign puts addresses on the ENI and returns what the answer names. Of addresses by name it
	// puts all or none. AddressTaken: another ENI, or the cloud itself, has one of them, and Take is
	// not set or does not help, as with a primary address. An address that this ENI has already may
	// be an error or not, as the cloud likes.
	Assign(ctx context.Context, a Assign) (Assigned, error)

	// Unassign takes addresses or blocks of one family from the ENI. NoSuchAddress: it lacks one of
	// them, and nothing has happened.
	Unassign(ctx context.Context, u Unassign) error

	// Rewrite replaces the mark of an ENI, if Traits.MarksV6.
	Rewrite(ctx context.Context, id string, m Mark, token string) error

	// SetGroups replaces the security groups of an ENI.
	SetGroups(ctx context.Context, id string, groups []string, token string) error

	// Reserve reserves a range of a subnet for addresses by name, if Traits.Keeps, and returns the
	// reservation's ID. ENIs keep the addresses of it that they have. A range that overlaps a
	// reserved one, or is not in the subnet, is refused, and nothing happens.
	Reserve(ctx context.Context, r Reservation) (id string, err error)

	// Unreserve ends a reservation, if Traits.Keeps. ENIs keep the addresses of it that they have.
	Unreserve(ctx context.Context, id string) error

	// Reservations returns those of a subnet, if Traits.Keeps, from all pages.
	Reservations(ctx context.Context, subnet string) ([]Reservation, error)
}

// Prober is a Driver that can find out more than its methods tell: whether calls are
// permitted, whether security groups exist. It changes nothing.
type Prober interface {
	Probe(ctx context.Context, p Probe) []cloud.Finding
}

// Probe is what a Prober is asked about.
type Probe struct {
	Self   Self
	VPC    string
	Groups []string // of new ENIs
	// Any is an ENI of the instance: one that was made for it if there is one, else its primary one.
	Any     Interface
	Cluster string // that new ENIs are marked with
	IPv6    bool   // pods have IPv6
	Region  bool   // it is asked for all instances of a cluster, and for ranges of their subnets
}

// Clocked is a Driver that knows, from the last answer, how far the machine's clock is ahead of the
// cloud's.
type Clocked interface {
	Skew() (ahead time.Duration, known bool)
}

// Self is an instance, as its metadata or the configuration says.
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
	V4    int // IPv4 addresses or prefixes per ENI, its primary address among them
	V6    int // IPv6 addresses per ENI, its primary address among them; 0: none
	// Prefixes: the instance takes delegated prefixes.
	Prefixes bool
	// Guessed: V4 and V6 are rules of thumb, and the cloud may refuse fewer addresses.
	Guessed bool
	// NoPrimary: pods can't use secondary addresses of the primary ENI. PrimaryAlone: they can
	// only if it is the one ENI that the instance may have.
	NoPrimary, PrimaryAlone bool
	// Builtin is why the Shape comes from a built-in table, such as that the cloud did not answer;
	// nil if it comes from the cloud.
	Builtin error
}

// SubnetFilter selects the subnets with one of the IDs and, if there are Tags, those of the VPC
// that have all of them.
type SubnetFilter struct {
	IDs  []string
	VPC  string
	Tags map[string]string
}

// Selects tells whether the filter selects a subnet of its VPC. It is for clouds that can only list
// all subnets of the VPC.
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
	// Pods are separate ranges that secondary addresses of ENIs come from, such as GCP's secondary
	// ranges and Azure's pod subnets; none: they come from V4 and V6.
	Pods  []netip.Prefix
	Free  int // IPv4 addresses left for pods, below 0 if the cloud does not count them
	Ready bool
	Tags  map[string]string
	Wrong string // why what the cloud tells can't be right, "" if it can; if set, only ID counts
}

// Filter selects ENIs by one of its fields.
type Filter struct {
	// Attached: to this instance, or on their way to or from it, with its primary ENI. It may be
	// another instance than this process's own. Its Type says, where that matters, which service of
	// the cloud has it.
	Attached Self
	Made     string   // with a mark for this instance, attached or not
	Token    string   // with Made: with this token in the mark
	IDs      []string // with these IDs
	Loose    string   // with a mark of this cluster, attached nowhere

	// Listed, unless nil, is set to how many ENIs the cloud has listed, if the driver had to select
	// from all of the VPC.
	Listed *int `json:"-"`
}

// State is the state of an ENI.
type State uint8

// The states.
const (
	Loose     State = iota // made, and attached nowhere
	Pending                // the cloud is still making it
	Attaching              // on its way to the instance
	Attached               // in use
	Detaching              // on its way from the instance
)

// Interface is an ENI as the cloud describes it. Its fields for what the cloud does not tell have
// their zero value, unless they say otherwise.
type Interface struct {
	ID, MAC           string
	Subnet, VPC, Zone string
	Groups            []string
	State             State
	Instance          string    // that it is attached to, or on its way to or from, "" if none
	Attachment        string    // its ID, "" if the cloud has no such thing
	Index, Card       int       // at the instance; Index is -1 if the cloud tells none
	Outlives          bool      // the cloud keeps it when the instance ends; only if Traits.Binds
	Created           time.Time // when it was attached, if the cloud only tells that; the zero Time if neither
	Primary           bool      // the ENI that the instance was created with
	Mark              Mark      // the zero Mark if it has none of ours
	// Unmanaged is why pods can't use the ENI and enipool must not touch it, "" if they can.
	Unmanaged string

	V4, V6  netip.Addr     // primary addresses; invalid if it has none or the cloud does not tell which one it is
	Singles []netip.Addr   // the other addresses
	Blocks  []netip.Prefix // delegated prefixes
	Wrong   string         // why what the cloud tells can't be right, "" if it can
}

// Mark is what enipool writes on an ENI that it makes, in tags or in the description.
type Mark struct {
	Instance string    // that it was made for
	Token    string    // of the CreateInterface call
	Asked    time.Time // when that was, by the clock of the node
	Cluster  string
	Index    int        // if Traits.NoIndex
	V6       netip.Addr // its primary IPv6 address, if Traits.MarksV6
}

// ValidToken tells whether a token can be a word of a mark wherever marks are written: in a tag or in a description.
func ValidToken(token string) bool {
	for i := range len(token) {
		if token[i] <= ' ' || token[i] > '~' {
			return false
		}
	}
	return len(token) >= 1 && len(token) <= 64
}

// Ours tells whether the ENI was made for the instance.
func (m Mark) Ours(instance string) bool { return m.Token != "" && m.Instance == instance }

// Count is how many addresses of a family a request asks for: blocks, or single ones.
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
	// V4, V6 are addresses besides the primary ones, if Traits.CreateFills. The driver leaves out
	// what one request can't hold; the answer tells what the ENI has.
	V4, V6 Count
	IPv6   bool   // it gets a primary IPv6 address
	Named6 bool   // describes tell which of its IPv6 addresses that is
	Token  string // of the request
}

// Attach says where an ENI is to be attached.
type Attach struct {
	ID, Instance string
	Index, Card  int // of no meaning where Traits.NoIndex
	Token        string
}

// Assign describes addresses for an ENI: a Count of them or, if Traits.Exact, these Addresses.
type Assign struct {
	On        Interface // only ID, Primary and Instance count
	Family    eni.Family
	Count     Count
	Addresses []netip.Addr
	Subnet    string // that the Addresses lie in, if Traits.CrossSubnet; "": the ENI's
	Take      bool   // take the Addresses from whichever ENI has them as secondary ones, if Traits.Moves
	Token     string // if Traits.AssignTokens
}

// Assigned is what the answer to an Assign names. All of it is of the family; Addresses has none of
// Blocks. It may name more than is new.
type Assigned struct {
	Addresses []netip.Addr
	Blocks    []netip.Prefix
}

// Reservation is a range of a subnet whose addresses are assigned only by name.
type Reservation struct {
	ID, Subnet string
	Range      netip.Prefix
	Note       string // text of whoever made it
	Blocks     bool   // it is for delegated prefixes, not for addresses by name, if Traits.Reserves
}

// Unassign describes what an ENI loses: Addresses, or Blocks.
type Unassign struct {
	On        Interface // only ID, Primary and Instance count
	Family    eni.Family
	Addresses []netip.Addr
	Blocks    []netip.Prefix
	Token     string
}
