package demo

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/isolate"
)

// place is a row or a column of the matrix: the pods of one ENI, a node, the
// internet, a hostPort.
type place struct {
	label string
	from  []isolate.Namespace
	to    []netip.AddrPort
}

// places lists all of them in the order of the table.
func places(net *sim.Network, machines []*machine, pods []*pod) []place {
	var list []place
	for _, m := range machines {
		for _, nic := range m.enis {
			p := place{label: nic.ID}
			for _, pod := range pods {
				if pod.on == m && pod.eni == nic.Index {
					p.from = append(p.from, pod.ns)
					p.to = append(p.to, netip.AddrPortFrom(pod.addr, podPort))
				}
			}
			list = append(list, p)
		}
	}
	for _, m := range machines {
		list = append(list, place{label: "node " + m.name, from: []isolate.Namespace{m.ns},
			to: []netip.AddrPort{netip.AddrPortFrom(m.enis[0].V4.Primary.Addr(), podPort)}})
	}
	list = append(list, place{label: "internet", from: []isolate.Namespace{net.Internet().Namespace}, to: []netip.AddrPort{netip.AddrPortFrom(internet, podPort)}})
	for _, m := range machines {
		// By way of the last ENI, while the pod behind it may be on another one.
		list = append(list, place{label: "hostPort " + m.name, to: []netip.AddrPort{
			netip.AddrPortFrom(m.enis[0].V4.Primary.Addr(), hostPort), netip.AddrPortFrom(m.enis[1].V4.Primary.Addr(), hostPort)}})
	}
	return list
}

// cell is what came of the probes from one place to another.
type cell struct {
	tried, ok int
	took      []time.Duration
	seen      map[string]bool
	first     error
}

// matrix probes every pair of addresses and returns a cell a pair of places.
func matrix(ctx context.Context, list []place, step func()) ([][]cell, error) {
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
	err := each(ctx, jobs, 2, func(j job) error {
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
	fmt.Fprint(t, "from \\ to\t")
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
			fmt.Fprintf(t, "%.2f ms\t", float64(c.took[len(c.took)/2].Microseconds())/1000)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	return tried, failed, first
}
