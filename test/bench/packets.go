package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	pkgnode "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/vishvananda/netlink"
)

const packetsNote = `## What is compared in packets/s

One pod sends UDP in 64-byte frames as fast as one CPU does it; the node forwards them out of an ENI; the far end
counts and drops them. All pods are attached by the plugin and have their addresses on the second ENI, and the sender
is the one attached last, which for routing mode rule is the worst place. On the node with the fast path its agent's part
is played by the benchmark; what goes to the internet is translated and takes the plain way there too. The reference is a node of the same kind with
the same pods, links and SNAT, but with one ENI, no firewall marks and no routing rules: everything follows the main
table. Towards the VPC a packet keeps its address and leaves by the second ENI; towards the internet it gets the
node's address and leaves by the first one.
`

// crowds are the numbers of pods on the node.
func crowds() []int { return []int{1, 250, 750} }

func count(pods int) string {
	if pods == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", pods)
}

// destinations are what the pod sends to.
func destinations() map[string]netip.AddrPort {
	return map[string]netip.AddrPort{
		"the VPC":      netip.MustParseAddrPort("10.0.200.1:9"),
		"the internet": netip.MustParseAddrPort("203.0.113.1:9"),
	}
}

// crowded is a node with many pods. All but the sender share a namespace, where
// each has an interface; the node can't tell.
type crowded struct {
	node
	what   string
	out    map[string]int // which ENI packets to a destination must leave by
	ours   contender
	crowd  space
	size   int
	sender space
	fast   *pkgnode.FastPath // nil: there is none
}

// packetsRow measures how many packets a second get out of a pod.
func (b *bench) packetsRow() error {
	nodes, err := b.crowdedNodes()
	if err != nil {
		return err
	}
	for _, size := range crowds() {
		for i := range nodes {
			b.progress("packets: %s on the node with %s", count(size), nodes[i].what)
			if err := nodes[i].grow(b, size); err != nil {
				return err
			}
		}
		for _, to := range []string{"the VPC", "the internet"} {
			if err := b.packets(nodes, size, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// crowdedPool holds the addresses of their pods.
const crowdedPool = "10.0.4.0/22"

// crowdedNodes makes the nodes for the first row that needs them.
func (b *bench) crowdedNodes() ([]crowded, error) {
	if b.crowded != nil {
		return b.crowded, nil
	}
	list := []crowded{
		{what: "no source routing", out: map[string]int{"the VPC": 0, "the internet": 0}},
		{what: "routing map", out: map[string]int{"the VPC": 1, "the internet": 0}},
		{what: "routing rule", out: map[string]int{"the VPC": 1, "the internet": 0}},
		{what: fastWhat, out: map[string]int{"the VPC": 1, "the internet": 0}},
	}
	for i, pools := range [][]string{{crowdedPool}, {"", crowdedPool}, {"", crowdedPool}, {"", crowdedPool}} {
		n := &list[i]
		s, err := newSpace([]string{"plain", "map", "rule", "fast"}[i])
		if err != nil {
			return nil, err
		}
		if n.node, err = newNode(s, []string{"map", "map", "rule", "map"}[i], pools...); err != nil {
			return nil, fmt.Errorf("node with %s: %w", n.what, err)
		}
		n.ours = b.bin.enipool(n.what, n.cache)
		if n.crowd, err = newSpace(s.Name + "crowd"); err != nil {
			return nil, err
		}
	}
	b.crowded = list
	return list, errors.Join(list[0].space.do(func() error { return list[0].plain() }), list[3].keepFast())
}

// plain makes the node one without source routing: no rule of ours, and the plugin
// writes pods' routes into the main table, as for a release without rules for them.
func (n *crowded) plain() error {
	err := nodecache.Cache{Path: n.cache}.Replace(context.Background(), func(s *ipam.State, err error) (*ipam.State, error) {
		if s != nil {
			s.Settings.PodsInMain = true
		}
		return s, err
	})
	return errors.Join(err, removeRules())
}

// removeRules takes all of our routing rules away.
func removeRules() error {
	rules, err := netlink.RuleList(netlink.FAMILY_V4)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, r := range rules {
		if r.Protocol == netconf.Protocol || r.Protocol == netconf.PodsProtocol {
			err = errors.Join(err, netlink.RuleDel(&r))
		}
	}
	return err
}

// grow attaches pods until there are size of them, the sender last.
func (n *crowded) grow(b *bench, size int) error {
	return n.space.do(func() error {
		if n.sender.Name != "" {
			if _, err := n.ours.detach(n.sender, 0); err != nil {
				return err
			}
		}
		for n.size < size-1 {
			n.size++
			p := b.bin.attach("enipool", "ADD", container(n.size), fmt.Sprint("eth", n.size), n.crowd, enipoolConf(n.cache))
			if _, _, err := p.run(); err != nil {
				return err
			}
		}
		var err error
		if n.sender, err = newSpace(b.unique("sender")); err != nil {
			return err
		}
		if _, err = n.ours.attach(n.sender, 0); err != nil || n.fast == nil {
			return err
		}
		return n.needFast()
	})
}

// packets measures all nodes in turn.
func (b *bench) packets(nodes []crowded, size int, to string) error {
	found := make([]measure, len(nodes))
	for i, n := range nodes {
		found[i] = measure{what: fmt.Sprintf("packets to %s, %s, %s", to, count(size), n.what), unit: "kpps",
			command: fmt.Sprintf("sendmmsg UDP %d bytes, 1 CPU, %s", frame64, b.floodTime())}
	}
	for round := range b.longRuns() {
		b.round(fmt.Sprintf("packets to %s, %s", to, count(size)), round+1, b.longRuns())
		for i := range nodes {
			i = (i + round) % len(nodes)
			rate, err := nodes[i].rate(to, b.floodTime())
			if err != nil {
				return err
			}
			found[i].add(rate)
		}
	}
	b.report.add(found)
	for _, m := range found[1:] {
		t := target{of: m, ref: &found[0], want: 0.85, atLeast: true, shown: true}
		switch {
		case m.what == found[1].what:
			t.shown = false
		case m.what == found[3].what && to == "the VPC":
			t.want, t.shown = 1.25, false
		}
		b.report.add(nil, t)
	}
	return nil
}

func (b *bench) floodTime() time.Duration {
	return time.Duration(b.pick(1000, 300)) * time.Millisecond
}

// rate returns how many thousand packets a second reach the far end, all of
// which must have left by the right ENI.
func (n *crowded) rate(to string, length time.Duration) (float64, error) {
	var before, after []uint64
	var start time.Time
	var took time.Duration
	begin := func() (err error) {
		before, err = n.arrived()
		start = time.Now()
		return err
	}
	end := func() (err error) {
		took = time.Since(start)
		after, err = n.arrived()
		return err
	}
	c, err := dialUDP(n.sender, destinations()[to])
	if err != nil {
		return 0, fmt.Errorf("open socket in the pod: %w", err)
	}
	defer c.Close()
	if to == "the VPC" {
		if err := n.beAnswered(c); err != nil {
			return 0, err
		}
	}
	jumped := n.jumped()
	if err := flood(n.sender, c, length/5, length, begin, end); err != nil {
		return 0, err
	}
	right := after[n.out[to]] - before[n.out[to]]
	all := uint64(0)
	for i := range after {
		all += after[i] - before[i]
	}
	if right == 0 || all-right > right/100 {
		return 0, fmt.Errorf("packets to %s on the node with %s: %d of %d left by %s", to, n.what, right, all, n.enis[n.out[to]])
	}
	if jumped = n.jumped() - jumped; n.fast != nil && to == "the VPC" && jumped < right*9/10 {
		return 0, fmt.Errorf("packets to %s on the node with %s: %d of %d jumped", to, n.what, jumped, right)
	}
	return float64(right) / took.Seconds() / 1000, nil
}

// beAnswered has a host of the VPC answer the pod once; afterwards it is silent again.
func (n *crowded) beAnswered(pod *net.UDPConn) error {
	silent, err := n.answer(netip.MustParsePrefix(crowdedPool), n.out["the VPC"])
	if err != nil {
		return err
	}
	host, err := listenUDP(n.far, destinations()["the VPC"])
	if err == nil {
		err = errors.Join(exchange(pod, host), host.Close())
	}
	return errors.Join(err, silent())
}

// jumped returns how many packets took the fast path so far, in any direction.
func (n *crowded) jumped() uint64 {
	if n.fast == nil {
		return 0
	}
	_ = n.space.do(func() error { n.fast.Keep(context.Background()); return nil }) // reads the counters
	s := n.fast.Status()
	return s.Out + s.In + s.Local
}
