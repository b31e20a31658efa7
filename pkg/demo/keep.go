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

// keepUp waits until somebody has looked around enough. The agents go on.
func (d *demo) keepUp(ctx context.Context) error {
	m, p := d.machines[0], d.pods[0]
	enter := fmt.Sprintf("sudo nsenter --target %d --mount", os.Getpid())
	if sandbox.InUserNamespace() {
		enter = fmt.Sprintf("nsenter --target %d --user --preserve-credentials --mount", os.Getpid())
	}
	// Not `ip netns exec`: that hides the namespaces it makes from everybody else.
	into := func(ns isolate.Namespace) string { return enter + " nsenter --net=" + ns.Path() }
	in := into(m.ns)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cnitool := filepath.Join(filepath.Dir(filepath.Dir(self)), "scripts", "cnitool.sh")
	d.title("Kept up, the agents too. From another terminal:")
	d.say("  %s %s pool show --cache %s", in, self, m.cache.Path)
	d.say("  %s %s pool check --cache %s", in, self, m.cache.Path)
	d.say("  %s tail -f %s", enter, m.logPath())
	d.say("  %s ip rule; %s ip route show table 100; %s ip route show table 101; %s nft list table inet enipool", in, in, in, in)
	d.say("  %s ping -c 3 %s", into(p.ns), internet)
	d.say("  %s %s add %s my-pod     # then: check, status, del", in, cnitool, m.cache.Path)
	d.say("Ctrl-C ends it and removes everything.\n")
	return d.lookAfter(ctx)
}

// detachOthers deletes the pods that people have added by hand, as hold offers it, and left.
func (d *demo) detachOthers(ctx context.Context) error {
	for _, m := range d.machines {
		book, err := m.book(ctx)
		if err != nil {
			return err
		}
		for _, a := range book.Used() {
			if err := d.runtime.detachBy(ctx, m, *a.Owner); err != nil {
				return fmt.Errorf("del %s, which somebody added: %w", a.Owner.PodName(), err)
			}
			d.say("%s, which somebody added to %s, is deleted, too", a.Owner.PodName(), m.name)
		}
	}
	return nil
}

// detachBy is a DEL by what the node cache knows of a pod, in the network that it was added to.
func (r *runtime) detachBy(ctx context.Context, m *machine, o eni.Owner) error {
	list := *r.lists[m]
	list.Name = o.Network
	rt := &libcni.RuntimeConf{ContainerID: o.Container, NetNS: o.Netns, IfName: o.IfName}
	return m.ns.Do(func() error { return r.cni.DelNetworkList(ctx, &list, rt) })
}

// againTime is how long an agent stays down that somebody killed.
const againTime = time.Second

// lookAfter starts agents that end again, as a service manager would, until ctx
// ends.
func (d *demo) lookAfter(ctx context.Context) error {
	d.held.Store(true)
	defer d.held.Store(false)
	for {
		select {
		case <-ctx.Done():
			return nil
		case dead := <-d.dead:
			dead.on.agent = nil
			d.say("%v; it is started again, as a service manager would", dead.err)
			// Not at once: one that ends at its start would be started in a loop.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(againTime):
			}
			if err := d.startAgent(dead.on); err != nil {
				return err
			}
		}
	}
}
