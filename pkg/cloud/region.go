package cloud

import (
	"context"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Region acts for many nodes of one account and region, with one budget for all of them. Its
// methods may be called from several goroutines. What Cloud says about errors, and about answers
// that lag, holds here too.
type Region interface {
	// Node returns the Cloud of an instance, the same each time. It makes no call. With another type than before its limits are those of that.
	Node(i Instance) Cloud

	// Forget drops what is known of an instance. Its Node must not be used any more.
	Forget(instance string)

	// Look describes the instances together, in as few requests as possible, or all that have a Node
	// if instances is empty. It returns a View of each: what its Node's Interfaces would return.
	Look(ctx context.Context, instances []string) (map[string]View, error)

	// List calls page with the ENIs of the VPC, those of others too, as many at a time as a request
	// shows. It is no snapshot: an ENI may come twice, and then the later one counts; and List may
	// begin again from the first page. complete: every ENI that existed all the time was on a page;
	// otherwise the absence of one proves nothing. If Does().HidesPrimary, the primary ENIs of
	// instances are on no page. An error of page ends List, and is returned as it is.
	List(ctx context.Context, page func([]Listed) error) (complete bool, err error)

	// Subnets returns the subnets that new ENIs of any node may lie in, sorted by ID.
	Subnets(ctx context.Context) ([]Place, error)

	// Limits returns what an instance of each type can carry if nobody but enipool attaches ENIs, as
	// Cloud.Limits does for a real one. It asks for as many types per request as it can, and leaves
	// out types that the cloud does not have. ErrForbidden: the cloud only tells the limits of
	// existing instances.
	Limits(ctx context.Context, types []string) (map[string]eni.Limits, error)

	// Alive returns the states of the instances. One whose state could not be found out is left out,
	// and an error may tell why. Gone is final, but a describe that lags may show an instance as Gone
	// that was started a moment ago.
	Alive(ctx context.Context, instances []string) (map[string]State, error)

	// AssignExactly puts these addresses on an ENI of the instance, as secondary ones, and returns
	// those of them that the ENI has then, perhaps together with an error. Addresses that it has
	// already are no error. Repeating the call is safe.
	//
	// Addresses that the ENI from.ENI has as secondary ones move from there in one request. No
	// other ENI loses any.
	//
	// ErrTaken: one is not free. ErrForbidden: one is not for pods in the subnet, or the cloud can't
	// do it: it takes no addresses by name, moves none, or puts none of that subnet on this ENI.
	AssignExactly(ctx context.Context, instance, id string, addrs []netip.Addr, from Origin) ([]netip.Addr, error)

	// Reserve reserves a range of a subnet for AssignExactly: requests for any address get none of
	// it. ENIs keep the addresses of it that they have. Repeating the call is safe. ErrTaken: the
	// range overlaps one that is reserved already, by name or for delegated prefixes. ErrForbidden: it
	// is no range of the subnet, the cloud reserves none, or the cluster has no name by which to
	// recognise its own.
	Reserve(ctx context.Context, subnet string, in netip.Prefix) error

	// Unreserve ends a reservation of this cluster. A range that is not reserved is no error; one that
	// somebody else has reserved is ErrForbidden.
	Unreserve(ctx context.Context, subnet string, in netip.Prefix) error

	// Reserved returns all reserved ranges of a subnet, sorted. ErrForbidden: the cloud reserves none.
	Reserved(ctx context.Context, subnet string) ([]Reservation, error)

	// Does tells what the cloud can. It makes no call.
	Does() Capabilities

	// Buckets returns the token buckets of the account and region, by action, as far as they are
	// known. It makes no call.
	Buckets() map[string]Bucket
}

// Instance is one that a Region acts for. If Type or Zone is "", the cloud is asked for it.
type Instance struct {
	ID, Type, Zone string
}

// Origin is where the addresses of an AssignExactly come from. The zero Origin: they are free, in
// the subnet of the ENI that gets them.
type Origin struct {
	Subnet string // ID of the subnet that they lie in, "": that of the ENI that gets them. Another one needs Does().CrossSubnet
	ENI    string // ID of the ENI, in the same subnet, that may have some of them now, "": none
}

// Listed is an ENI as List shows it: as the cloud tells, not corrected by calls.
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
	Wrong      string         // why what the cloud tells can't be right, or why the ENI is unmanaged
}

// State is the state of an instance.
type State string

// The states. A Gone instance surely no longer exists. A Stopped one keeps its ENIs and has no pods.
// Exists is for one that is between states, or of which the cloud tells no more.
const (
	Running State = "running"
	Stopped State = "stopped"
	Exists  State = "exists"
	Gone    State = "gone"
)

// Reservation is a range of a subnet whose addresses are assigned only by name or, if it is for
// Blocks, only in delegated prefixes.
type Reservation struct {
	ID     string // in the cloud
	Range  netip.Prefix
	Ours   bool // a Region of this cluster has made it
	Blocks bool
}

// View is what Look shows of a node.
type View struct {
	Interfaces  []Interface   // as Cloud.Interfaces returns them
	Quarantined []Quarantined // what is left out, sorted by ID
	Err         error         // why there is no view: ErrNotFound if the instance has no ENI
}

// Place is a subnet with where it is.
type Place struct {
	Subnet
	VPC, Zone string
}

// Bucket holds at most Burst tokens, of which each request takes one, and gets PerSecond more.
type Bucket struct {
	Burst     int
	PerSecond float64
}

// Capabilities say what a cloud can do that others can't, and how much one request can hold.
type Capabilities struct {
	Indexes  bool // attached ENIs have device indexes; else enipool counts
	Exact    bool // AssignExactly
	Moves    bool // AssignExactly takes IPv4 addresses from another ENI
	Types    bool // Limits of instance types
	Keeps    bool // Reserve, Unreserve and Reserved
	Reserves bool // ranges of a subnet can be reserved for delegated prefixes, and Free leaves them out

	CrossSubnet  bool // AssignExactly puts addresses of another subnet on an ENI
	HidesPrimary bool // List lacks the primary ENIs of instances
	OneENI       bool // an instance has only its primary ENI

	Bits4, Bits6 int // lengths of delegated prefixes, 0 where there are none

	PerAssign int // addresses that a request puts or takes at most, 0 for no limit
	PerLook   int // instances that a request describes at most, 0: one, or all of the VPC
	PageSize  int // ENIs that a request describes at most
}
