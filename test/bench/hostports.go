package main

import (
	"errors"
	"fmt"
	"net/netip"
)

// manyPorts is how many hostPorts a node has where it has many.
const manyPorts = 500

// hostPortsRow measures connections to a hostPort of a pod from elsewhere in the VPC,
// with no other hostPort on the node and with many that other ADDs made before it.
func (b *bench) hostPortsRow() (err error) {
	const pool = "10.0.4.0/24"
	kinds := []int{1, manyPorts}
	nodes, found := make([]node, len(kinds)), make([]measure, len(kinds))
	for i, ports := range kinds {
		s, err := newSpace(fmt.Sprint("ports", ports))
		if err != nil {
			return err
		}
		if nodes[i], err = newNode(s, "map", "", pool); err != nil {
			return err
		}
		pod, err := b.servePorts(nodes[i], ports)
		if err != nil {
			return err
		}
		srv, err := serve(pod)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, srv.stop()) }()
		if _, err := nodes[i].answer(netip.MustParsePrefix(pool), 1); err != nil {
			return err
		}
		found[i] = measure{what: fmt.Sprintf("connections by hostPort, %d on the node", ports), unit: connections.unit,
			command: fmt.Sprintf("%s, %s", connections.command, b.talkTime())}
	}
	for round := range b.talkRounds() {
		b.round("connections by hostPort", round+1, b.talkRounds())
		for i := range nodes {
			i = (i + round) % len(nodes)
			n := nodes[i]
			rate, err := talk(n.far, connections, netip.AddrPortFrom(nodeAddr, lastHostPort), b.talkTime())
			if err := errors.Join(err, n.forgetConnections()); err != nil {
				return err
			}
			found[i].add(rate)
		}
	}
	b.report.add(found, target{of: found[1], ref: &found[0], want: 0.9, atLeast: true})
	return nil
}

// lastHostPort is that of the pod which serves.
const lastHostPort = 30_000

// servePorts attaches a pod with one hostPort, after another one with all the others.
func (b *bench) servePorts(n node, ports int) (space, error) {
	pods, err := newSpaces(b.unique("port"), 2)
	if err != nil {
		return space{}, err
	}
	ask := func(call int) map[string]any {
		if call == 1 {
			return map[string]any{"portMappings": []map[string]any{portMapping(lastHostPort)}}
		}
		var others []map[string]any
		for i := range ports - 1 {
			others = append(others, portMapping(20_000+i))
		}
		return map[string]any{"portMappings": others}
	}
	c, err := b.conflist("shipped conflist", shippedList, n, ask)
	if err != nil {
		return space{}, err
	}
	err = n.space.do(func() error {
		for call, pod := range pods {
			if _, err := c.attach(pod, call); err != nil {
				return fmt.Errorf("ADD: %w", err)
			}
		}
		return nil
	})
	return pods[1], err
}
