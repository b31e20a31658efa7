package order

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// The machine's times. A call that was sent takes effect within validity or never.
const (
	validity = 5 * time.Second
	timeout  = time.Second
)

var lease = Lease{Duration: 3 * time.Second, Settle: 2 * time.Second, Fence: validity + 2*time.Second}

// machine is a cloud, a cluster's objects, their agents and two operators. Its steps are what each of them may do at any time;
// what they decide is decided by the package's functions. off names the rule that it leaves out, for the tests of the rules.
type machine struct {
	off   string
	now   time.Duration
	cloud map[netip.Prefix]place
	nodes []*node
	ops   [2]*operator
	lead  int
	epoch int64 // on the lease
	calls []*call
	pods  int

	accepted int // a version, for stories
}

// place is where an address of the cloud is: on an ENI, nobody's, or others'.
type place struct {
	eni, before string        // before: until changed
	changed     time.Duration // until settle after it a describe may show the place before
}

const others = "others"

// node is one node's object, in all its versions, with its agent.
type node struct {
	id       string // of its ENI
	versions []View
	born     int // the first version of the object that there is now
	agent    agent
}

func (n *node) current() View { return n.versions[len(n.versions)-1] }

// agent is the agent of a node with the node cache.
type agent struct {
	state   *ipam.State
	head    Head
	boot    string
	run     int // which start of the agent it is
	seen    int // version
	patches []patch
}

// patch is a spec write under way.
type patch struct {
	spec      Spec
	base, run int
	withdrawn []netip.Prefix
}

// operator is one operator with what it knows of each node.
type operator struct {
	renewed time.Duration
	terms   []*Term // of each node; nil where it was never the leader
	seen    []int
	shown   []*Description
}

// call is an unassign under way, or its answer.
type call struct {
	op, node int
	term     *Term
	addr     netip.Prefix
	sent     time.Duration
	done     bool
}

// machineENI is the only ENI of a node of the machine.
func machineENI(id string) (ENI, eni.Interface) {
	v4 := eni.Net{Primary: netip.MustParsePrefix("10.0.0.2/24"), Gateway: netip.MustParseAddr("10.0.0.1")}
	return ENI{ID: id, State: Attached, V4: v4}, eni.Interface{ID: id, Device: "eth0", MTU: 1500, V4: v4}
}

// newMachine has nodes on whose ENIs the first addresses are, free in their caches; the rest is nobody's.
func newMachine(off string, nodes int, addrs ...string) *machine {
	m := &machine{off: off, now: time.Hour, cloud: map[netip.Prefix]place{}, epoch: 1}
	for i := range nodes {
		made, nic := machineENI("eni-" + string(rune('a'+i)))
		spec := Spec{Mode: Operator, Families: []eni.Family{eni.IPv4}, Boot: "boot-0"}
		status := Status{Mode: Operator, Revision: 1, Epoch: 1, Limits: eni.Limits{ENIs: 1, V4: 100}, ENIs: []ENI{made}}
		n := &node{id: made.ID, agent: agent{boot: "boot-0"}}
		n.agent.state = &ipam.State{Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, Families: spec.Families}, ENIs: []eni.Interface{nic}}
		n.versions = []View{{spec, status}}
		m.nodes = append(m.nodes, n)
	}
	for i, a := range addrs {
		p := netip.MustParsePrefix(a)
		m.cloud[p] = place{changed: -time.Hour}
		if i < nodes {
			n := m.nodes[i]
			m.cloud[p] = place{eni: n.id, changed: -time.Hour}
			n.versions[0].Status.ENIs[0].Addresses = []netip.Prefix{p}
			n.agent.state.AddAddresses(0, Addresses(eni.Limits{}, p), nil, m.now)
			n.agent.head = Head{1, 1}
		}
	}
	for i := range m.ops {
		m.ops[i] = &operator{terms: make([]*Term, nodes), seen: make([]int, nodes), shown: make([]*Description, nodes), renewed: m.now}
	}
	m.takeOver(0)
	for _, n := range m.nodes {
		n.versions[0].Status.Epoch, n.agent.head.Epoch = m.epoch, m.epoch
	}
	return m
}

func (m *machine) without(rule string) bool { return m.off == rule }

// list returns the addresses of the cloud in one order.
func (m *machine) list() []netip.Prefix {
	var all []netip.Prefix
	for p := range m.cloud {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return all
}

func (m *machine) move(p netip.Prefix, to string) {
	m.cloud[p] = place{eni: to, before: m.cloud[p].eni, changed: m.now}
}

// pass lets time pass. Calls that are too old never take effect.
func (m *machine) pass(d time.Duration) {
	m.now += d
	m.calls = slices.DeleteFunc(m.calls, func(c *call) bool { return !c.done && m.now >= c.sent+validity })
}

// violation says which address a pod has, or may get, that is not on its node's ENI; "" if none.
func (m *machine) violation() string {
	for _, n := range m.nodes {
		for _, a := range n.agent.state.Addresses {
			if a.State == eni.Releasing {
				continue
			}
			for p, at := range m.cloud {
				if p.Contains(a.Addr) && at.eni != n.id {
					return a.Addr.String() + " is " + a.State.String() + " on " + n.id + " and is at '" + at.eni + "'"
				}
			}
		}
	}
	return ""
}
