package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/isolate/sandbox"
)

// hold waits, with --keep, until somebody has looked around enough.
func (d *demo) hold(ctx context.Context) error {
	if !d.Keep {
		return nil
	}
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
	d.title("Kept up. From another terminal:")
	d.say("  %s %s pool show --cache %s", in, self, m.cache.Path)
	d.say("  %s %s pool check --cache %s", in, self, m.cache.Path)
	d.say("  %s ip rule; %s ip route show table 101; %s nft list table inet enipool", in, in, in)
	d.say("  %s ping -c 3 %s", into(p.ns), internet)
	d.say("  %s %s add %s my-pod     # then: check, status, del", in, cnitool, m.cache.Path)
	d.say("Ctrl-C ends it and removes everything.")
	<-ctx.Done()
	return nil
}
