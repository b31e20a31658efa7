package sim

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// VPC is the account's network.
type VPC struct {
	ID     string
	V4, V6 []netip.Prefix
	Tags   map[string]string
}

// Group is a security group.
type Group struct {
	ID, Name, Description string
	Enterprise            bool // of Baidu's second kind, never together with the first
	Tags                  map[string]string
}

// Type is what instances of a type may carry. An ENI has V4 slots for IPv4: its primary address,
// each secondary address and each prefix takes one.
type Type struct {
	Name      string
	ENIs      int // attached at once, on all cards
	V4, V6    int // slots an ENI
	PrimaryV4 int // slots of the instance's primary ENI, 0 is V4
	Cards     []int
	CPUs      int
	Memory    int  // MiB
	NoPrefix  bool // prefixes are refused, as by types that are not of Nitro
	WiredV6   int  // addresses of an IPv6 prefix that a Network delivers, the lowest ones; 0 is 64
}

// Instance is an instance of the account.
type Instance struct {
	ID     string
	Node   string // its name in the Network, "" is the ID
	Type   string
	Subnet string // of its own ENI
	Groups []string
	V6     int // IPv6 addresses of its own ENI
	Tags   map[string]string

	Launched   time.Time
	Terminated bool
	Stopped    bool `json:",omitempty"`
}

// Status is a state of an ENI or of an attachment.
type Status string

// The states. An ENI is pending, available, attaching, in-use or detaching; its
// attachment is attaching, attached or detaching.
const (
	Pending   Status = "pending"
	Available Status = "available"
	Attaching Status = "attaching"
	Attached  Status = "attached"
	InUse     Status = "in-use"
	Detaching Status = "detaching"
)

// Attachment is an ENI's place on an instance.
type Attachment struct {
	ID                  string
	Instance            string
	Index, Card         int
	Status              Status
	Time                time.Time
	DeleteOnTermination bool
}

// Interface is an ENI. What callers get is shared: its slices and maps must not be
// changed.
type Interface struct {
	ID, Name, Description string
	Subnet, Zone          string
	MAC                   string
	Groups                []string
	Tags                  map[string]string
	Status                Status
	Created               time.Time
	Attachment            *Attachment // nil if it is not attached, never changed in place

	Primary  netip.Addr     // IPv4; the zero Addr in an IPv6-only subnet
	V4       []netip.Addr   // secondary, in the order of their coming
	V6       []netip.Addr   // in the order of their coming
	First6   bool           // the first of V6 is its primary one and stays
	Prefixes []netip.Prefix // /28 and /80, in the order of their coming

	NoSourceCheck bool
	Requester     string // a service of the cloud that owns it, "" for the user
}

// Slots returns how many of the family's slots are taken.
func (i Interface) Slots(f eni.Family) int {
	n := len(i.V6)
	if f == eni.IPv4 {
		n = len(i.V4)
		if i.Primary.IsValid() {
			n++
		}
	}
	return n + len(i.PrefixesOf(f))
}

// PrefixesOf returns the prefixes of the family.
func (i Interface) PrefixesOf(f eni.Family) []netip.Prefix {
	var of []netip.Prefix
	for _, p := range i.Prefixes {
		if eni.FamilyOf(p.Addr()) == f {
			of = append(of, p)
		}
	}
	return of
}

// Addresses returns all single addresses: the primary, then the others.
func (i Interface) Addresses() []netip.Addr {
	var all []netip.Addr
	if i.Primary.IsValid() {
		all = append(all, i.Primary)
	}
	return append(append(all, i.V4...), i.V6...)
}

// At tells whether the ENI has a place on the instance.
func (i Interface) At(instance string) bool {
	return i.Attachment != nil && i.Attachment.Instance == instance
}
