package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/isolate/sandbox"
)

// keepUp says how to look around, and keeps agents and pods up until ctx ends.
func (d *demo) keepUp(ctx context.Context) error {
	n, p := d.nodes[0], d.pods[0]
	enter := fmt.Sprintf("sudo nsenter --target %d --mount", os.Getpid())
	if sandbox.InUserNamespace() {
		enter = fmt.Sprintf("nsenter --target %d --user --preserve-credentials --mount", os.Getpid())
	}
	// Not `ip netns exec`: that hides the namespaces it makes from everybody else.
	into := func(ns isolate.Namespace) string { return enter + " nsenter --net=" + ns.Path() }
	in := into(n.ns)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cnitool := filepath.Join(filepath.Dir(filepath.Dir(self)), "scripts", "cnitool.sh")
	for i, l := range d.pages {
		if i == 0 {
			d.title("Kept up, the agents too. In a browser:")
		}
		d.say("  http://%s/    %s", l.Addr(), d.nodes[i].name)
	}
	d.title("From another terminal:")
	d.say("  %s %s pool show --cache %s", in, self, n.cache.Path)
	d.say("  %s %s pool check --cache %s", in, self, n.cache.Path)
	d.say("  %s tail -f %s", enter, n.logPath())
	d.say("  %s ip rule; %s ip route show table 100; %s ip route show table 101; %s nft list table inet enipool", in, in, in, in)
	d.say("  %s ping -c 3 %s", into(p.ns), internet)
	d.say("  %s %s add %s my-pod     # then: check, status, del", in, cnitool, n.cache.Path)
	d.say("Ctrl-C ends it and removes everything.\n")
	defer d.showPages(ctx)()
	return d.restartEnded(ctx)
}

// detachOthers deletes the pods that people have added by hand, as keepUp offers it, and left.
func (d *demo) detachOthers(ctx context.Context) error {
	for _, n := range d.nodes {
		state, err := n.nodeState(ctx)
		if err != nil {
			return err
		}
		for _, a := range state.Used() {
			if err := d.runtime.detachBy(ctx, n, *a.Owner); err != nil {
				return fmt.Errorf("del %s, which somebody added: %w", a.Owner.PodName(), err)
			}
			d.say("%s, which somebody added to %s, is deleted, too", a.Owner.PodName(), n.name)
		}
	}
	return nil
}

// detachBy is a DEL by what the node cache knows of a pod, in the network that it was added to.
func (r *runtime) detachBy(ctx context.Context, n *labNode, o eni.Owner) error {
	list := *r.lists[n]
	list.Name = o.Network
	rt := &libcni.RuntimeConf{ContainerID: o.Container, NetNS: o.Netns, IfName: o.IfName}
	return n.ns.Do(func() error { return r.cni.DelNetworkList(ctx, &list, rt) })
}

// againTime is how long an agent stays down that somebody killed.
const againTime = time.Second

// restartEnded starts agents again that end, as a service manager would, until ctx ends: people
// who look around may kill one to see what happens.
func (d *demo) restartEnded(ctx context.Context) error {
	d.held.Store(true)
	defer d.held.Store(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case one := <-d.ended:
			one.on.agent = nil
			d.say("%v; it is started again, as a service manager would", one.err)
			// Not at once: one that ends at its start would be started in a loop.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(againTime):
			}
			if err := d.startAgent(one.on); err != nil {
				return err
			}
		}
	}
}
