package demo

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
)

// place is a row or a column of the matrix: pods of one ENI, a node, the internet,
// a hostPort.
type place struct {
	label string
	pods  bool
	from  []isolate.Namespace
	to    []netip.AddrPort
}

// probedPods is how many pods of an ENI stand for all of them.
const probedPods = 4

// reach starts servers on the nodes and in the internet and probes everything
// from everywhere.
func (d *demo) reach(ctx context.Context) error {
	d.title("Who reaches whom: TCP from every source to every target, %d pods an ENI, median time to connect and be answered", probedPods)
	servers := []func(func() error) error{d.vpc.Network.Internet().Do}
	for _, n := range d.nodes {
		servers = append(servers, n.ns.Do)
	}
	// Pods have servers already; each node and the internet need one to be a target.
	for _, in := range servers {
		var l net.Listener
		if err := in(func() (err error) { l, err = serve(podPort); return err }); err != nil {
			return err
		}
		defer l.Close()
	}
	list, err := d.listPlaces(ctx)
	if err != nil {
		return err
	}
	bar := d.progress(len(list)*len(list), "probing")
	cells, err := probeAll(ctx, list, func() { _ = bar.Add(1) })
	if err != nil {
		return err
	}
	var tried, failed int
	var first error
	d.table(func(w io.Writer) { tried, failed, first = printMatrix(w, list, cells) })
	if failed > 0 {
		return fmt.Errorf("%d of %d probes failed, the first: %w", failed, tried, first)
	}
	d.say("%d of %d probes answered. A hostPort is tried on the first and on the second ENI's address.", tried, tried)
	return d.checkSources(ctx, list, cells)
}

// listPlaces lists all of them in the order of the table.
func (d *demo) listPlaces(ctx context.Context) ([]place, error) {
	var enis, nodes, ports []place
	for _, n := range d.nodes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return nil, err
		}
		for _, nic := range state.ENIs {
			enis = append(enis, d.podsAt(n, nic.Index, n.name+" "+nic.Device))
		}
		first, second := state.ENIs[0].V4.Primary.Addr(), state.ENIs[1].V4.Primary.Addr()
		nodes = append(nodes, place{label: "node " + n.name, from: []isolate.Namespace{n.ns}, to: []netip.AddrPort{netip.AddrPortFrom(first, podPort)}})
		// By way of the second ENI too, whichever the pod behind it is on.
		ports = append(ports, place{label: "hostPort " + n.name, to: []netip.AddrPort{netip.AddrPortFrom(first, hostPort), netip.AddrPortFrom(second, hostPort)}})
	}
	out := place{label: "internet", from: []isolate.Namespace{d.vpc.Network.Internet().Namespace}, to: []netip.AddrPort{netip.AddrPortFrom(internet, podPort)}}
	return slices.Concat(enis, nodes, []place{out}, ports), nil
}

// podsAt is the place of the ENI's pods.
func (d *demo) podsAt(n *labNode, index int, label string) place {
	p := place{label: label, pods: true}
	for _, pod := range d.podsOf(n) {
		if pod.index == index && len(p.from) < probedPods {
			p.from = append(p.from, pod.ns)
			p.to = append(p.to, netip.AddrPortFrom(pod.addr, podPort))
		}
	}
	return p
}

// cell is what came of the probes from one place to another.
type cell struct {
	tried, ok int
	took      []time.Duration
	seen      map[string]bool
	first     error
}

// probeAll probes every pair of addresses and returns a cell for each pair of places, by from and
// to.
func probeAll(ctx context.Context, list []place, step func()) ([][]cell, error) {
	cells := make([][]cell, len(list))
	var mu sync.Mutex
	type job struct{ from, to int }
	var jobs []job
	for i := range list {
		cells[i] = make([]cell, len(list))
		for k := range list {
			jobs = append(jobs, job{i, k})
		}
	}
	err := runEach(ctx, jobs, 2, func(j job) error {
		c := cell{seen: map[string]bool{}}
		for _, ns := range list[j.from].from {
			for _, to := range list[j.to].to {
				took, seen, err := probe(ns, to)
				c.tried++
				if err != nil {
					c.first = err
					continue
				}
				c.ok++
				c.took, c.seen[seen] = append(c.took, took), true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		cells[j.from][j.to] = c
		step()
		return nil
	})
	return cells, err
}

// printMatrix prints the median latency of each cell, and returns how many
// probes failed.
func printMatrix(w io.Writer, list []place, cells [][]cell) (tried, failed int, first error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "ms from \\ to\t")
	for _, p := range list {
		if len(p.to) > 0 {
			fmt.Fprintf(t, "%s\t", p.label)
		}
	}
	fmt.Fprintln(t)
	for i, p := range list {
		if len(p.from) == 0 {
			continue
		}
		fmt.Fprintf(t, "%s\t", p.label)
		for k := range list {
			if len(list[k].to) == 0 {
				continue
			}
			c := cells[i][k]
			tried, failed = tried+c.tried, failed+c.tried-c.ok
			if c.first != nil && first == nil {
				first = fmt.Errorf("%s -> %s: %w", p.label, list[k].label, c.first)
			}
			if c.ok < c.tried || c.tried == 0 {
				fmt.Fprintf(t, "%d/%d FAIL\t", c.ok, c.tried)
				continue
			}
			slices.Sort(c.took)
			fmt.Fprintf(t, "%.2f\t", float64(c.took[len(c.took)/2].Microseconds())/1000)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	return tried, failed, first
}

// checkSources tells what source addresses were seen: pods' own inside the VPC, the
// nodes' beyond it.
func (d *demo) checkSources(ctx context.Context, list []place, cells [][]cell) error {
	out := map[string]bool{}
	for i, from := range list {
		for k, to := range list {
			if from.pods && to.label == "internet" {
				maps.Copy(out, cells[i][k].seen)
			}
			// Translation would make fewer sources than there are pods.
			if from.pods && to.pods && i != k && len(cells[i][k].seen) != len(from.from) {
				return fmt.Errorf("pods of %s saw %d source addresses of the %d pods of %s: somebody translates them", to.label, len(cells[i][k].seen), len(from.from), from.label)
			}
		}
	}
	seen := slices.Sorted(maps.Keys(out))
	var nodes []string
	for _, n := range d.nodes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return err
		}
		nodes = append(nodes, state.ENIs[0].V4.Primary.Addr().String())
	}
	if !slices.Equal(seen, nodes) {
		return fmt.Errorf("the internet saw pods as %v, want the nodes' addresses %v", seen, nodes)
	}
	d.say("Pods see each other's own addresses; the internet sees them as %s, their nodes.", strings.Join(seen, " and "))
	return nil
}

// showENIs prints what the burst made.
func (d *demo) showENIs(ctx context.Context) error {
	d.title("ENIs, filled in order")
	return d.listENIs(ctx)
}

// listENIs prints how full the ENIs are.
func (d *demo) listENIs(ctx context.Context) error {
	states := make([]ipam.State, len(d.nodes))
	for i, n := range d.nodes {
		var err error
		if states[i], err = n.nodeState(ctx); err != nil {
			return err
		}
	}
	d.table(func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "NODE\tENI\tDEVICE\tPRIMARY\tPODS\tFREE")
		for i, n := range d.nodes {
			for _, nic := range states[i].ENIs {
				c := countAddresses(&states[i], nic.Index)
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\n", n.name, nic.ID, nic.Device, nic.V4.Primary, c.Used, c.Free)
			}
		}
		t.Flush()
	})
	return nil
}
