package cloud

import (
	"context"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Region acts for many nodes of one account and region, with one budget for all of them.
// Its methods may be called from several goroutines. What holds of errors and of answers
// that lag at Cloud holds here.
type Region interface {
	// Node returns the Cloud of an instance, the same each time. It makes no call.
	Node(i Instance) Cloud

	// Forget drops what is known of an instance. A Node that it had must not be used any more.
	Forget(instance string)

	// Look describes the instances together, in as few requests as it can, or all that
	// there are Nodes of where it is given none. It returns a View of each: what that
	// Node's Interfaces would.
	Look(ctx context.Context, instances []string) (map[string]View, error)

	// List calls page with the ENIs of the VPC, others' too, with as many as a request shows. It is
	// no snapshot: one may come twice, the later is the truth, and page may see all again from
	// the first. It is complete if an ENI that was there all the time was on one of the pages;
	// else absence tells nothing. Where Does().HidesPrimary those of instances are on none.
	// An error of page ends it, and is returned.
	List(ctx context.Context, page func([]Listed) error) (complete bool, err error)

	// Subnets returns the subnets that new ENIs may lie in, whichever node they are for,
	// sorted by ID.
	Subnets(ctx context.Context) ([]Place, error)

	// Limits returns what instances of the types may carry where nobody but enipool attaches
	// ENIs, as Cloud.Limits does of one: there need not be any. It asks for as many types in a
	// request as it can, and leaves out those that the cloud does not have. ErrForbidden: the
	// cloud tells the limits of instances alone.
	Limits(ctx context.Context, types []string) (map[string]eni.Limits, error)

	// Alive returns what became of the instances. One that nothing could be found out about is
	// left out, and an error may tell why. Gone is for good; a describe that lags may show an
	// instance as Gone that was started a moment ago.
	Alive(ctx context.Context, instances []string) (map[string]State, error)

	// AssignExactly puts these addresses on an ENI of the instance, as secondary ones, and
	// returns those of them that it has then, of which there may be some together with an
	// error. Those that it has already are fine. ErrTaken: one is not free. ErrForbidden:
	// one is not for pods in the subnet, the cloud puts none of that subnet on this ENI, or
	// takes none by name. To ask again is safe. Those that the ENI from.ENI has as secondary
	// ones move from there in one request; ErrForbidden where the cloud can't. No other ENI
	// loses any.
	AssignExactly(ctx context.Context, instance, id string, addrs []netip.Addr, from Origin) ([]netip.Addr, error)

	// Reserve keeps a range of a subnet for AssignExactly: whoever asks for any address gets none of
	// it. Who has one of them keeps it, and to ask again is safe. ErrTaken: the range overlaps
	// another that is reserved, or is kept for delegated prefixes. ErrForbidden: it is no range
	// of the subnet, the cloud keeps none, or the cluster has no name to tell its own by.
	Reserve(ctx context.Context, subnet string, in netip.Prefix) error

	// Unreserve ends what Reserve has made. A range that is not reserved is fine; one that
	// somebody else has reserved is ErrForbidden.
	Unreserve(ctx context.Context, subnet string, in netip.Prefix) error

	// Reserved returns the ranges of a subnet that are reserved, whoever did it, sorted. ErrForbidden:
	// the cloud keeps none.
	Reserved(ctx context.Context, subnet string) ([]Reservation, error)

	// Does tells what the cloud can. It makes no call.
	Does() Capabilities

	// Buckets tells how many requests the account and region lets pass, by action, as far
	// as is known. It makes no call.
	Buckets() map[string]Bucket
}

// Instance is one that a Region acts for. Type and Zone may be "": then they are asked for.
type Instance struct {
	ID, Type, Zone string
}

// Origin is where the addresses of an AssignExactly come from. The zero Origin: from what is
// free in the subnet of the ENI that gets them.
type Origin struct {
	Subnet string // that they lie in, "": that of the ENI that gets them. Another one takes Does().CrossSubnet
	ENI    string // ID of the one that may have them now, in the same subnet, "": none
}

// Listed is an ENI as List shows it: what the cloud tells, which no call has corrected.
type Listed struct {
	ID, Subnet string
	Instance   string // that it is attached to, or on its way to or from, "" if none
	For        string // the instance that it was made for, "" if enipool has not made it
	Token      string // that it was made with
	Cluster    string // that it was made in
	Primary    bool   // an instance was born with it
	Created    time.Time
	Addresses  []netip.Addr   // all of them, those of Blocks not among them
	Blocks     []netip.Prefix // delegated prefixes
	Wrong      string         // why what the cloud tells can't be right, or why nobody may touch it
}

// State is what became of an instance.
type State string

// The states. Gone surely exists no longer, Stopped keeps its ENIs and has no pods. Exists is all
// else: on its way from one to another, or the cloud tells no more.
const (
	Running State = "running"
	Stopped State = "stopped"
	Exists  State = "exists"
	Gone    State = "gone"
)

// Reservation is a range of a subnet that is given out by name alone or, if it is for Blocks,
// in delegated prefixes.
type Reservation struct {
	Range  netip.Prefix
	Ours   bool // a Region of this cluster has made it
	Blocks bool
}

// View is what a look shows of a node.
type View struct {
	Interfaces  []Interface   // as Cloud.Interfaces returns them
	Quarantined []Quarantined // what is left out, sorted by ID
	Err         error         // why there is none: ErrNotFound where the instance has no ENI
}

// Place is a subnet with where it is.
type Place struct {
	Subnet
	VPC, Zone string
}

// Bucket holds Burst tokens, one for each request, and gets PerSecond more.
type Bucket struct {
	Burst     int
	PerSecond float64
}

// Capabilities are what a cloud can and other clouds can't, and how much one request carries.
type Capabilities struct {
	Indexes  bool // attached ENIs have device indexes; else enipool counts
	Exact    bool // AssignExactly
	Moves    bool // AssignExactly takes IPv4 addresses from another ENI
	Types    bool // Limits of instance types
	Keeps    bool // Reserve, Unreserve and Reserved
	Reserves bool // ranges of a subnet can be reserved for delegated prefixes, and Free leaves them out

	CrossSubnet  bool // AssignExactly puts addresses of another subnet on an ENI
	HidesPrimary bool // List lacks the primary ENIs of instances
	OneENI       bool // an instance has its own ENI alone

	Bits4, Bits6 int // lengths of delegated prefixes, 0 where there are none

	PerAssign int // addresses that a request puts or takes at most, 0 for no limit
	PerLook   int // instances that a request describes at most, 0: one, or all of the VPC
	PageSize  int // ENIs that a request describes at most
}
