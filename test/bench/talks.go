package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
)

const talksNote = `## What is compared in requests/s and connections/s

The nodes are those of packets/s, with one pod, and a second one for what stays on the node. A client in the pod, and a
server in the VPC or in the second pod, share a CPU. A request is a byte and its answer in one connection; a connection
is opened, carries one request and is reset. Packets that come in are UDP in 64-byte frames from the VPC, counted in the pod.
`

// talkers are the nodes of packetsRow that talk: without source routing, with it, and
// with the fast path too. Routing mode rule differs from map with many pods only.
func talkers(nodes []crowded) []*crowded { return []*crowded{&nodes[0], &nodes[1], &nodes[3]} }

// talksRow measures requests, connections and incoming packets of a pod.
func (b *bench) talksRow() error {
	nodes, err := b.crowdedNodes()
	if err != nil {
		return err
	}
	var list []*conversation
	for _, n := range talkers(nodes) {
		if err := n.grow(b, 1); err != nil {
			return err
		}
		c, err := b.startConversation(n)
		if err != nil {
			return fmt.Errorf("node with %s: %w", n.what, err)
		}
		list = append(list, c)
	}
	for _, kind := range []talkKind{requests, connections} {
		for _, to := range []string{"the VPC", "a pod of the node"} {
			err := b.compareNodes(list, fmt.Sprintf("%s to %s", kind.what, to), kind, 1, func(c *conversation) (float64, error) {
				return talk(c.sender, kind, c.servers[to], b.talkTime())
			})
			if err != nil {
				return err
			}
		}
	}
	incoming := talkKind{unit: "kpps", command: fmt.Sprintf("sendmmsg UDP %d bytes, 1 CPU", frame64)}
	err = b.compareNodes(list, "packets from the VPC, 1 pod", incoming, 0, func(c *conversation) (float64, error) {
		return c.incoming(b.talkTime())
	})
	for _, c := range list {
		err = errors.Join(err, c.stop())
	}
	return err
}

// compareNodes measures all nodes in turn, the first of which is the reference. A wanted
// ratio of 0 asks for nothing.
func (b *bench) compareNodes(list []*conversation, what string, kind talkKind, want float64, rate func(*conversation) (float64, error)) error {
	found := make([]measure, len(list))
	for i, c := range list {
		found[i] = measure{what: what + ", " + c.what, unit: kind.unit, command: fmt.Sprintf("%s, %s", kind.command, b.talkTime())}
	}
	for round := range b.talkRounds() {
		b.round(what, round+1, b.talkRounds())
		for i := range list {
			i = (i + round) % len(list) // none is always the one after another
			c := list[i]
			v, err := rate(c)
			if err := errors.Join(err, c.forgetConnections()); err != nil {
				return fmt.Errorf("node with %s: %w", c.what, err)
			}
			found[i].add(v)
		}
	}
	b.report.add(found)
	for _, m := range found[1:] {
		b.report.add(nil, target{of: m, ref: &found[0], want: want, atLeast: true, shown: want == 0})
	}
	return nil
}

// talkRounds and talkTime: many short rounds tell small differences better than few long
// ones do.
func (b *bench) talkRounds() int { return b.pick(15, 2) }

func (b *bench) talkTime() time.Duration { return b.floodTime() / 2 }

// conversation is a node whose pod has somebody to talk to.
type conversation struct {
	*crowded
	peer    space
	servers map[string]netip.AddrPort
	ends    []func() error
}

// peerCall is the peer's call, of no other pod.
const peerCall = 1 << 20

// startConversation starts a server in the VPC and one in a pod of its own.
func (b *bench) startConversation(n *crowded) (*conversation, error) {
	c := &conversation{crowded: n}
	var err error
	if c.peer, err = newSpace(b.unique("peer")); err != nil {
		return nil, err
	}
	err = n.space.do(func() error { _, err := n.ours.attach(c.peer, peerCall); return err })
	if err != nil {
		return nil, err
	}
	c.ends = append(c.ends, func() error {
		return n.space.do(func() error { _, err := n.ours.detach(c.peer, peerCall); return err })
	})
	peer, err := podAddress(c.peer)
	if err != nil {
		return nil, err
	}
	c.servers = map[string]netip.AddrPort{"the VPC": netip.AddrPortFrom(vpcHost, serverPort), "a pod of the node": netip.AddrPortFrom(peer, serverPort)}
	for _, in := range []space{n.far, c.peer} {
		s, err := serve(in)
		if err != nil {
			return nil, err
		}
		c.ends = append(c.ends, s.stop)
	}
	silent, err := n.answer(netip.MustParsePrefix(crowdedPool), n.out["the VPC"])
	if err != nil {
		return nil, err
	}
	c.ends = append(c.ends, silent)
	return c, nil
}

// stop ends what was started, the last first.
func (c *conversation) stop() (err error) {
	for len(c.ends) > 0 {
		last := len(c.ends) - 1
		err = errors.Join(err, c.ends[last]())
		c.ends = c.ends[:last]
	}
	return err
}

// incoming returns how many thousand packets a second from the VPC reach the pod.
func (c *conversation) incoming(length time.Duration) (rate float64, err error) {
	pod, err := podAddress(c.sender)
	if err != nil {
		return 0, err
	}
	at := netip.AddrPortFrom(pod, 9)
	sink, err := listenUDP(c.sender, at) // hardly read: a full one drops, and the pod sends no errors
	if err != nil {
		return 0, fmt.Errorf("open socket in the pod: %w", err)
	}
	defer sink.Close()
	host, err := dialUDP(c.far, at)
	if err != nil {
		return 0, fmt.Errorf("open socket in the VPC: %w", err)
	}
	defer host.Close()
	if err := exchange(host, sink); err != nil {
		return 0, fmt.Errorf("packets from the VPC on the node with %s: %w", c.what, err)
	}
	jumped := c.jumped()
	var before, after uint64
	var start time.Time
	var took time.Duration
	begin := func() (err error) { before, err = received(c.sender); start = time.Now(); return err }
	end := func() (err error) { took = time.Since(start); after, err = received(c.sender); return err }
	if err := flood(c.far, host, length/5, length, begin, end); err != nil {
		return 0, err
	}
	if after == before {
		return 0, errors.New("no packet of the VPC reached the pod")
	}
	if arrived := after - before; c.fast != nil && c.jumped()-jumped < arrived*9/10 {
		return 0, fmt.Errorf("packets from the VPC on the node with %s: %d of %d jumped", c.what, c.jumped()-jumped, arrived)
	}
	return float64(after-before) / took.Seconds() / 1000, nil
}

// received returns how many packets have reached the pod.
func received(pod space) (count uint64, err error) {
	err = pod.do(func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return fmt.Errorf("look up the pod's eth0: %w", err)
		}
		count = link.Attrs().Statistics.RxPackets
		return nil
	})
	return count, err
}

func podAddress(pod space) (addr netip.Addr, err error) {
	err = pod.do(func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return fmt.Errorf("look up the pod's eth0: %w", err)
		}
		list, err := link.Addrs()
		if err != nil {
			return fmt.Errorf("read the pod's addresses: %w", err)
		}
		for _, a := range list {
			p, err := netip.ParsePrefix(a.String())
			if err == nil && p.Addr().Is4() {
				addr = p.Addr()
				return nil
			}
		}
		return errors.New("the pod has no IPv4 address")
	})
	return addr, err
}
