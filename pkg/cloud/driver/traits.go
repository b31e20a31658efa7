package driver

import (
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// Traits are what is peculiar to a cloud. A difference between clouds that is not in
// here has no reason: the engine treats them alike. Each driver's DESIGN.md names the
// page or the source line that says so.
type Traits struct {
	Name string // of the cloud's API, in messages: "EC2"
	Keys Keys

	// FillsFirst: an ENI gets its addresses before it is attached. Else it is filled
	// when it is attached: what it may carry depends on its instance.
	FillsFirst bool
	// CreateFills: Create takes counts of addresses.
	CreateFills bool
	// Binds: an ENI is deleted with its instance only if it is told to.
	Binds bool
	// NoIndex: attached ENIs have no device index. The mark keeps ours.
	NoIndex bool
	// MarksV6: the cloud does not tell which IPv6 address is the primary one. The mark
	// keeps ours, and ENIs without one have no IPv6 address for pods.
	MarksV6 bool
	// AssignTokens: Assign heeds tokens, so that a repetition has no second effect.
	AssignTokens bool
	// AllOrNothing: Assign puts all that it is asked for, or refuses. Else it may put
	// fewer, or none, and call that a success.
	AllOrNothing bool
	// Exact: Assign takes addresses by name.
	Exact bool
	// Moves: Assign takes IPv4 addresses by name from another ENI of the subnet, if it is told to.
	Moves bool
	// CrossSubnet: Assign takes addresses by name of another subnet of the zone than the ENI's.
	CrossSubnet bool
	// Types: Shapes tells what instances of types may carry. Without it it fails with
	// cloud.ErrForbidden.
	Types bool
	// OneNIC: an instance never has another ENI than its primary one. What is about others
	// (Create, Attach, Bind, Detach, Delete, Rewrite) fails with cloud.ErrLimit.
	OneNIC bool
	// PerCall is the most addresses that a call puts or takes, 0 for no limit.
	PerCall int
	// PerScan is how many instances a Scan names at most, PageSize how many ENIs a Page
	// has at most.
	PerScan, PageSize int
	// HidesPrimary: a Page lacks the primary ENIs of instances.
	HidesPrimary bool
	// Bits4, Bits6 are the lengths of delegated prefixes, 0 where there are none.
	Bits4, Bits6 int
	// Reserves: ranges of a subnet can be reserved for delegated prefixes, and Subnet.Free
	// leaves them out.
	Reserves bool
	// Keeps: Reserve keeps a range of a subnet for addresses by name. Without it Reserve, Unreserve
	// and Reservations fail with cloud.ErrForbidden.
	Keeps bool
	// Zone makes names of one zone the same; nil: they are.
	Zone func(name string) string

	// Requests are the actions that each method of Driver, or part of one, is made of, by the
	// names that the cloud counts them by, in their order: for a method that asks for pages or
	// for several objects, those of one. A method that is not in here makes none. Each driver's
	// tests compare them with what it sends.
	Requests map[string][]string
	// Retries are how the driver repeats a request that changes nothing.
	Retries Retries
	// Buckets are what an account and region lets pass, by action, as far as is known.
	Buckets map[string]cloud.Bucket

	Times Times
}

// Times are how long things take in the cloud.
type Times struct {
	Poll, Slow time.Duration // between two looks at what takes time: at first, and at most
	Usual      time.Duration // what an ENI takes to be attached, or to be detached
	Settle     time.Duration // until describes show what was made, at most
	Wait       time.Duration // for a step: after that its outcome is unknown
}

// Keys are where a person finds what messages name.
type Keys struct {
	Subnet   string // the API's word for the subnet's room
	Self     string // the configuration's keys for what Driver.Self asks the instance metadata, "" if it asks nothing
	Keyring  string // where credentials come from besides a role of the instance: "AWS_ACCESS_KEY_ID and ..."
	Room     string // the configuration's key for how many addresses an ENI may have, "" if there is none
	Policy   string // the file with the permissions that a node needs: "conf/aws/policy.json"
	Reserved string // how to ask which ranges of a subnet are reserved, where Traits.Reserves
}
