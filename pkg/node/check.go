package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// underWayTime is how long a change that the plugin is making may look like a difference. One of an agent, which
// makes all that an ENI needs before it writes the node cache, does so for agentLooks of them on a node whose
// processors have much to do.
const (
	underWayTime = pluginTime
	agentLooks   = 4
)

// Check compares node state, kernel and the live namespaces, changes nothing, and
// returns a line for each thing that does not agree, with what to do about it.
//
// Pods come and go meanwhile, and an agent may be at work. So what differs is looked at
// again after a while, and counts if it differs still, for the same pod.
//
// Errors: a LeftOutError where this process may not enter the pods' namespaces; the lines are all else that
// differs then.
func (n Node) Check(ctx context.Context) ([]string, error) {
	if n.Uninstalled() {
		// All that the kernel lacks now is as it was wanted.
		return []string{uninstalled + "; what may be left of it `enipool-agent uninstall` removes, an agent or `enipoolctl pool load` sets it up again"}, nil
	}
	looks := 1
	if _, runs := n.Cache.Agent(); runs {
		looks = agentLooks
	}
	return n.lookAgain(ctx, looks, func() error { return sleep(ctx, underWayTime) })
}

// lookAgain looks as many times again as it is told, as long as something differs.
func (n Node) lookAgain(ctx context.Context, looks int, wait func() error) ([]string, error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	found, err := n.findAll(ctx, h)
	for range looks {
		gone := errors.Is(err, host.ErrNoLink) // this moment: an agent is about to forget the ENI
		if err != nil && !gone || err == nil && len(linesOf(found)) == 0 {
			break
		}
		if err := wait(); err != nil {
			return linesOf(found), err
		}
		before := found
		if found, err = n.findAll(ctx, h); err == nil && !gone {
			found = confirmFindings(before, found)
		}
	}
	if err == nil {
		err = leftOutOf(found)
	}
	return linesOf(found), err
}

// findAll looks for all that does not agree at the moment.
func (n Node) findAll(ctx context.Context, h *host.Host) ([]finding, error) {
	was, err := n.instances(ctx)
	if err != nil {
		return nil, err
	}
	found, err := n.findEverywhere(ctx, h)
	if err != nil {
		return found, err
	}
	is, err := n.instances(ctx)
	return stable(found, was, is), err
}

func (n Node) findEverywhere(ctx context.Context, h *host.Host) ([]finding, error) {
	pods, err := h.PodLinks()
	if err != nil {
		return nil, err
	}
	occupied, err := n.Occupancy(ctx)
	if err != nil {
		return nil, err
	}
	found, missing, leaving, err := n.checkENIs(ctx)
	if err != nil {
		return nil, err
	}
	if err := n.Cache.CheckWritable(); err != nil {
		found = slices.Concat(plainFindings([]string{"must fix: no pod can start or end: " + err.Error()}), found)
	}
	differs, err := n.checkKernel(ctx, h, missing)
	// While an agent deletes an ENI the kernel loses what is the ENI's before the cache does. So neither the node
	// with it nor the node without it is what the kernel should hold, and only what differs from both counts.
	if err == nil && len(leaving) > 0 {
		var without []finding
		without, err = n.checkKernel(ctx, h, slices.Concat(missing, leaving))
		differs = confirmFindings(without, differs)
	}
	if found = append(found, differs...); err != nil {
		return found, err
	}
	var state ipam.State
	err = n.Cache.View(ctx, func(s *ipam.State) error { state = *s; return nil })
	if err != nil {
		return found, err
	}
	found = slices.Concat(n.checkDamaged(&state, len(found) > 0), found)
	blocked, err := n.Blocked(ctx)
	if err != nil {
		return found, err
	}
	misrouted, err := n.Misrouted(ctx)
	if err != nil {
		return found, err
	}
	held, err := n.checkHeld(ctx, occupied)
	if err != nil {
		return found, err
	}
	ports, err := n.PortConflicts(ctx)
	if err != nil {
		return found, err
	}
	if wrong := ipam.OutsideVPC(state.Settings, state.ENIs); wrong != "" {
		found = slices.Concat(plainFindings([]string{"must fix: " + wrong}), found)
	}
	more, err := n.checkOwners(h, &state)
	return slices.Concat(found, plainFindings(blocked), plainFindings(prefixLines("must fix: ", misrouted)), plainFindings(held), plainFindings(ports), more, checkLinks(pods, &state)), err
}

// checkKernel compares what the kernel holds for the node, without the ENIs with the ids.
func (n Node) checkKernel(ctx context.Context, h *host.Host, without []string) ([]finding, error) {
	add, remove, fw, err := diff(ctx, h, n.leaving(without), netconf.Node{})
	if err != nil {
		return nil, err
	}
	found := findingsOf(add, "kernel lacks ", n.remedy("`enipoolctl pool load` puts it back"))
	found = append(found, findingsOf(remove, "kernel has a stale ", n.remedy("`enipoolctl pool load` removes it"))...)
	rules, err := n.checkFirewall(ctx, h, fw)
	return append(found, rules...), err
}

// checkENIs finds the ENIs without a link, and returns their ids: what the kernel should
// hold for them it can't. leaving are those that an agent may be deleting, for which the
// kernel may hold something still or nothing any more.
func (n Node) checkENIs(ctx context.Context) (found []finding, missing, leaving []string, err error) {
	err = n.Cache.View(ctx, func(s *ipam.State) error {
		ids, err := unlinked(s)
		if err != nil {
			return err
		}
		for _, nic := range s.ENIs {
			linked := !slices.Contains(ids, nic.ID)
			idle := nic.Index > 0 && !slices.ContainsFunc(s.Addresses, func(a eni.Address) bool { return a.ENI == nic.Index && a.State != eni.Releasing })
			goes := idle && n.Keeper != ""
			if !linked {
				missing = append(missing, nic.ID)
			} else if goes {
				leaving = append(leaving, nic.ID)
			}
			if linked || goes {
				continue
			}
			line := fmt.Sprintf("must fix: link %s of the ENI %s is missing on this node: the ENI is detached, its driver lost the device, or the link has another name", nic.Device, nic.ID)
			found = append(found, finding{line: line + n.linkRemedy(), what: line})
		}
		return nil
	})
	return found, missing, leaving, err
}

// linkRemedy ends the line of an ENI without a link. No agent can bring a device back; it uses
// the ENI again when the device is back.
func (n Node) linkRemedy() string {
	if n.Keeper == "" {
		return "; attach it again and run `enipoolctl pool load`, or take it out of the inventory for that"
	}
	return "; its pods are cut off and no other pod gets its addresses. Look for the device in the kernel's log (dmesg); attach the ENI again, reload its driver or restart the node: an agent uses it again within seconds"
}

// checkDamaged finds the addresses that can't be read in the cache. The
// kernel seems to have too much without them, which nobody should take away: so they are
// told before that.
func (n Node) checkDamaged(state *ipam.State, differs bool) []finding {
	var found []finding
	for _, d := range state.Damaged {
		line := "cache " + d.Cause + n.remedy("`enipoolctl pool load` rebuilds it")
		if differs {
			line += "; what of its address differs below is right again then"
		}
		found = append(found, finding{line: line, what: "cache " + d.Cause})
	}
	return found
}

// remedy ends a line of Check: with who does it anyway, or with what there is to do.
func (n Node) remedy(todo string) string {
	if n.Keeper != "" {
		todo = n.Keeper
	}
	return "; " + todo
}

func prefixLines(p string, lines []string) []string {
	for i := range lines {
		lines[i] = p + lines[i]
	}
	return lines
}

func suffix(lines []string, s string) []string {
	for i := range lines {
		lines[i] += s
	}
	return lines
}
