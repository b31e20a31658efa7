package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nodecache"
)

// finish deletes the last pods, stops the agents, and checks that nothing is left behind. An
// interrupt from here on changes nothing.
func (d *demo) finish(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer stop()
	d.title("The last pods are deleted, the agents stopped")
	if err := d.detach(ctx, d.pods); err != nil {
		return err
	}
	if d.keep {
		if err := d.detachOthers(ctx); err != nil {
			return err
		}
	}
	var ended []string
	for _, n := range d.nodes {
		if n.agent != nil {
			ended = append(ended, n.name+"'s")
		}
	}
	if err := d.stopAgents(); err != nil {
		return err
	}
	d.say("SIGTERM: exit code 0 of %s agent", strings.Join(ended, " and "))
	for _, n := range d.nodes {
		if err := d.nothingLeft(ctx, n); err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
	}
	return d.nobodyLeft()
}

// nothingLeft fails if anything of a pod is still on the node, or if the cloud has
// other ENIs than the node knows.
func (d *demo) nothingLeft(ctx context.Context, n *labNode) error {
	state, err := n.nodeState(ctx)
	if err != nil {
		return err
	}
	if used := state.Used(); len(used) > 0 {
		return fmt.Errorf("%d addresses are still used, %s by %s", len(used), used[0].Addr, used[0].Owner.PodName())
	}
	var wrong []string
	var links []host.PodLink
	// Links and checks are of the network namespace that the thread is in.
	err = n.ns.Do(func() error {
		h, err := host.New()
		if err != nil {
			return err
		}
		defer h.Close()
		if links, err = h.PodLinks(); err != nil {
			return err
		}
		wrong, err = n.node().Check(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if len(links)+len(wrong) > 0 {
		return fmt.Errorf("left behind: %v %v", links, wrong)
	}
	var known []string
	for _, nic := range state.ENIs {
		known = append(known, nic.ID)
	}
	if have := eniNames(d.vpc.Account.Snapshot().Nodes[n.name]); !sameNames(have, known) {
		return fmt.Errorf("the cloud has the ENIs %v for it, the node cache %v", have, known)
	}
	d.say("node %s: nothing left behind: no link, route, rule or used address; %d cooling; the kernel is as the cache says; no ENI leaked",
		n.name, countAddresses(&state, -1).Cooling)
	return nil
}

// sameNames tells whether both lists have the same names: ENIs that are made at once may be
// adopted in another order than the cloud made them.
func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// nobodyLeft fails if the account is not in order or a process is left in one of
// the namespaces.
func (d *demo) nobodyLeft() error {
	if err := d.vpc.Account.Check(); err != nil {
		return fmt.Errorf("the account: %w", err)
	}
	spaces := []isolate.Namespace{d.vpc.Network.Router().Namespace, d.vpc.Network.Internet().Namespace}
	for _, n := range d.nodes {
		spaces = append(spaces, n.ns)
	}
	var errs []error
	for _, ns := range spaces {
		list, err := processes(ns)
		if errs = append(errs, err); len(list) > 0 {
			errs = append(errs, fmt.Errorf("processes are left in %s: %v", ns.Name, list))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.say("The account is in order, and no process is left.")
	return nil
}

// processes returns the ids of those that are in the namespace.
func processes(ns isolate.Namespace) (pids []int, err error) {
	want, err := os.Stat(ns.Path())
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, path := range paths {
		// A process that this one may not read is none of the demonstration's.
		if have, err := os.Stat(path); err == nil && os.SameFile(want, have) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// countAddresses counts the addresses of the ENI, or all for an index below 0.
func countAddresses(state *ipam.State, index int) ipam.Count {
	return state.Count(nodecache.SinceBoot(), func(a eni.Address) bool { return index < 0 || a.ENI == index })
}
