package driver

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Traits say how a cloud differs from others. The engine treats clouds alike in everything that is
// not in here. Each driver's DESIGN.md names the page or the source line behind each of them.
type Traits struct {
	Name string // of the cloud's API, in messages: "EC2"
	Keys Keys

	// FillsFirst: an ENI gets its addresses before it is attached. Else it gets them after that,
	// because what it can carry depends on its instance.
	FillsFirst bool
	// CreateFills: Create takes counts of addresses.
	CreateFills bool
	// Binds: an ENI is deleted with its instance only if it is told to.
	Binds bool
	// NoIndex: attached ENIs have no device index. The mark keeps ours.
	NoIndex bool
	// MarksV6: the cloud does not tell which IPv6 address is the primary one. The mark keeps ours;
	// ENIs without a mark have no IPv6 addresses for pods.
	MarksV6 bool
	// AssignTokens: Assign takes tokens, so that a repetition has no second effect.
	AssignTokens bool
	// AllOrNothing: Assign puts all addresses that it is asked for, or refuses. Else it may put
	// fewer, or none, and call that a success.
	AllOrNothing bool
	// Exact: Assign takes addresses by name.
	Exact bool
	// Moves: Assign can take IPv4 addresses by name from another ENI of the subnet.
	Moves bool
	// CrossSubnet: Assign takes addresses by name of another subnet of the zone than the ENI's. It
	// is asked for one address at a time, because no cloud says how many it takes.
	CrossSubnet bool
	// Types: Shapes works. Else it fails with cloud.ErrForbidden.
	Types bool
	// OneNIC: an instance never has an ENI besides its primary one. The methods for others
	// (Create, Attach, Bind, Detach, Delete, Rewrite) fail with cloud.ErrLimit.
	OneNIC bool
	// PerCall is the most addresses that a request puts or takes, 0 for no limit.
	PerCall int
	// PerScan is how many instances a Scan names at most, PageSize how many ENIs a Page has at most.
	PerScan, PageSize int
	// HidesPrimary: a Page lacks the primary ENIs of instances.
	HidesPrimary bool
	// Bits4, Bits6 are the lengths of delegated prefixes, 0 where there are none.
	Bits4, Bits6 int
	// Reserves: people can reserve ranges of a subnet for delegated prefixes, and Subnet.Free leaves
	// those out.
	Reserves bool
	// Keeps: Reserve, Unreserve and Reservations work. Else they fail with cloud.ErrForbidden.
	Keeps bool
	// Zone maps the names that a zone has to one; nil: it has only one.
	Zone func(name string) string

	// Requests are the actions, by the names that the cloud counts them by, that each method of
	// Driver, or part of one, is made of, in their order. For a method that asks for pages or for
	// several objects they are those of one. A method that is not in here makes no request. Each
	// driver's tests compare them with what it sends.
	Requests map[string][]string
	// Retries say how the driver repeats a request that changes nothing.
	Retries Retries
	// Buckets are the token buckets of an account and region, by action, as far as they are known.
	Buckets map[string]cloud.Bucket

	Times Times
}

// Times are how long things take in the cloud.
type Times struct {
	Poll, Slow time.Duration // the first and the longest pause between two describes while waiting
	Usual      time.Duration // how long it usually takes to attach or to detach an ENI
	Settle     time.Duration // the consistency window: describes lag at most as long as that
	Wait       time.Duration // how long to wait for a step, before its outcome counts as unknown
}

// Keys are the names that messages use, so that a person finds what they are about.
type Keys struct {
	Subnet   string // the API's word for the subnet's room
	Self     string // the configuration's keys for what Driver.Self asks the instance metadata, "" if it asks nothing
	Keyring  string // where credentials come from besides a role of the instance: "AWS_ACCESS_KEY_ID and ..."
	Room     string // the configuration's key for how many addresses an ENI may have, "" if there is none
	Policy   string // the file with the permissions that a node needs: "conf/aws/policy.json"
	Reserved string // how to ask which ranges of a subnet are reserved, where Traits.Reserves
}
