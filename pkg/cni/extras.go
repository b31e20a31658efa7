package cni

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/podrecord"
)

// Host ports and limits. They are set by writing the record first, then the kernel, and
// removed by closing the kernel's ports first, then the record; the link of a limit is found
// by its name. So a crash anywhere leaves something by which DEL, GC or the agent clean up.
// Pods that ask for neither have no record: that costs their DEL one system call.

// refuseExtras refuses what can't be done for the request's role: another plugin's
// interface has no link of ours to open ports or set limits on.
func (r Request) refuseExtras() error {
	if r.Owner.Kind == eni.Veth || r.Conf.Extras.IsZero() {
		return nil
	}
	key := "runtimeConfig.portMappings"
	if len(r.Conf.Extras.Ports) == 0 {
		key = "runtimeConfig.bandwidth"
	}
	return &config.KeyError{Key: key, Value: "set", Unsupported: true,
		Want: "absent for the interface of another plugin: chain the portmap or bandwidth plugin behind enipool"}
}

// addExtras opens the pod's ports and sets its limits.
func (p *Plugin) addExtras(ctx context.Context, kernel *host.Host, request Request, settings ipam.Settings, lease ipam.Lease) error {
	if request.Conf.Extras.IsZero() {
		return nil
	}
	rec := podrecord.Record{Key: request.Owner.Key, Pod: request.Owner.PodName(), Firewall: settings.Firewall, Extras: request.Conf.Extras}
	for _, a := range lease.Addresses {
		rec.Addrs = append(rec.Addrs, a.Addr)
	}
	if err := refuseUnserved(rec); err != nil {
		return err
	}
	// Each taken port may be that of a stale allocation, whose sandbox may have several.
	freed := map[eni.Key]bool{}
	for {
		err := p.applyExtras(ctx, kernel, rec)
		if err == nil {
			p.warnOfClaims(kernel, rec)
		}
		var taken *hostport.TakenError
		if !errors.As(err, &taken) || freed[taken.Owner.Key] {
			return err
		}
		if err := p.freeIfGone(ctx, kernel, taken.Owner.Key, err); err != nil {
			return err
		}
		freed[taken.Owner.Key] = true
	}
}

// refuseUnserved refuses a port that can't lead to the pod, whatever happens.
func refuseUnserved(rec podrecord.Record) error {
	var errs []error
	for _, port := range netconf.Unserved(rec.Ports, rec.Addrs) {
		errs = append(errs, &config.KeyError{Key: "runtimeConfig.portMappings", Value: port.String(),
			Want: fmt.Sprintf("of a hostIP of the pod's family, or of none: the pod has no %s address", eni.FamilyOf(port.Host))})
	}
	return errors.Join(errs...)
}

// warnOfClaims warns of ports that somebody else claims too, or that nobody reaches. It reads
// much and holds no lock meanwhile: only this pod waits for it.
func (p *Plugin) warnOfClaims(kernel *host.Host, rec podrecord.Record) {
	if len(rec.Ports) == 0 {
		return
	}
	ports := hostport.Ports(rec)
	claims, err := kernel.PortClaims(ports)
	if err != nil {
		p.Log.Warn("who else has the host ports is not known", "pod", rec.Pod, "error", err)
	}
	for _, line := range claims.Lines(ports) {
		p.Log.Warn("host port", "pod", rec.Pod, "key", rec.Key.String(), "cause", line)
	}
}

// applyExtras writes the record and makes the kernel hold what it says, all under the
// lock of the records: otherwise the agent would repair what is only half done.
func (p *Plugin) applyExtras(ctx context.Context, kernel *host.Host, rec podrecord.Record) error {
	return p.withPorts(ctx, rec.Firewall, func(ports hostport.Node) error {
		rec, err := ports.Reserve(rec)
		if err == nil && len(rec.Ports) > 0 {
			err = p.openPorts(kernel, ports, rec)
		}
		if err != nil || rec.Limits == (netconf.Limits{}) {
			return err
		}
		return kernel.SetLimits(limitOf(rec))
	})
}

// openPorts opens the ports and sees to it that all can use them at once: those on the node
// who use 127.0.0.1, and those with UDP flows from before.
func (p *Plugin) openPorts(kernel *host.Host, ports hostport.Node, rec podrecord.Record) error {
	if err := kernel.TagPorts(rec.Key); err != nil {
		return err
	}
	if err := ports.Open(rec); err != nil {
		return err
	}
	for _, a := range rec.Addrs {
		if a.Is4() {
			if err := kernel.RouteLoopback(netconf.HostDevice(rec.Key)); err != nil {
				return err
			}
		}
	}
	held, err := ports.Held(rec)
	p.forgetFlows(kernel, rec.Key, held)
	return err
}

// forgetFlows is no reason for an ADD or a DEL to fail: flows end by themselves.
func (p *Plugin) forgetFlows(kernel *host.Host, key eni.Key, held []netconf.PodPorts) {
	if err := kernel.ForgetFlows(held); err != nil {
		p.Log.Warn("old UDP flows to host ports live on", "key", key.String(), "error", err)
	}
}

// closePorts closes the pod's ports and removes its record. What is missing is fine. Without
// a record that can be read it closes what leads to the addresses. It leaves the link of a
// limit, which is found by its name. The caller calls late after everything else, see
// hostport.Node.Close. Without a usable node cache settings is zero.
func (p *Plugin) closePorts(ctx context.Context, kernel *host.Host, settings ipam.Settings, key eni.Key, addrs []eni.Address) (late func(), err error) {
	late = func() {}
	rec, found, err := p.records().Read(key)
	if podrecord.Unreadable(err) {
		p.Log.Warn("record can't be read", "key", key.String(), "error", err)
		if len(addrs) == 0 {
			// Whoever rebuilds the node state closes what leads to none of its pods.
			return late, p.records().Remove(key)
		}
		if rec, err = p.restoreRecord(ctx, kernel, settings, addrs); err == nil && rec.Extras.IsZero() {
			return late, p.records().Remove(key) // the kernel has nothing for it
		}
	}
	if err == nil && !found {
		rec, found = p.findUnrecorded(ctx, kernel, settings, key, addrs)
	}
	if err != nil || !found {
		return late, err
	}
	// The record's packet filter may be another one: the agent moves open ports when that changes.
	firewall := settings.Firewall
	if settings.MarkMask == 0 { // no node state: the mask is never 0
		firewall = rec.Firewall
	}
	var held []netconf.PodPorts
	err = p.withPorts(ctx, firewall, func(ports hostport.Node) (err error) {
		if held, err = ports.Held(rec); err == nil {
			late, err = ports.Close(rec)
		}
		return err
	})
	if err == nil {
		p.forgetFlows(kernel, key, held)
	}
	return late, err
}

// removeExtras undoes addExtras for a pod whose link is gone or is removed elsewhere.
func (p *Plugin) removeExtras(ctx context.Context, kernel *host.Host, settings ipam.Settings, key eni.Key, addrs []eni.Address) error {
	late, err := p.closePorts(ctx, kernel, settings, key, addrs)
	defer late()
	return errors.Join(err, kernel.ClearLimits(netconf.LimitDevice(key)))
}

// removeStaleExtras is removeExtras for an owner of the address that is gone. If the
// same attachment was added again meanwhile, it has another address and keeps what it
// asked for.
func (p *Plugin) removeStaleExtras(ctx context.Context, kernel *host.Host, settings ipam.Settings, a eni.Address) error {
	rec, found, err := p.records().Read(a.Owner.Key)
	if err == nil && found && !slices.Contains(rec.Addrs, a.Addr) {
		return nil
	}
	addrs := []eni.Address{a}
	if podrecord.Unreadable(err) {
		held, _, err := p.leaseOf(ctx, a.Owner.Key)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(held.Addresses, func(b eni.Address) bool { return b.Addr == a.Addr }) {
			addrs = held.Addresses // those of both families have one record
		}
	}
	return p.removeExtras(ctx, kernel, settings, a.Owner.Key, addrs)
}

// removeUnknown cleans up after an attachment that no record tells of.
func (p *Plugin) removeUnknown(kernel *host.Host, key eni.Key) error {
	// With the pod's link goes the limit's, if it is there.
	return errors.Join(kernel.DelPodUnknown(key), kernel.ClearLimits(netconf.LimitDevice(key)))
}

// checkExtras compares the record with what the runtime asks for now and with the
// kernel.
func (p *Plugin) checkExtras(ctx context.Context, kernel *host.Host, request Request, settings ipam.Settings) ([]string, error) {
	rec, found, err := p.records().Read(request.Owner.Key)
	switch {
	case err != nil:
		return nil, err
	case !found && request.Conf.Extras.IsZero():
		return nil, nil
	case !found:
		return []string{fmt.Sprintf("there is no record of the host ports or limits of %s", request.Owner.Key)}, nil
	}
	var lines []string
	asked := rec
	asked.Extras = request.Conf.Extras
	same := asked.Extras.IsZero() // a runtime need not repeat them
	if !same {
		all, err := p.records().AllUnlocked()
		if err != nil && !podrecord.Unreadable(err) {
			return nil, err
		}
		same = hostport.SameExtras(rec, asked, all)
	}
	if !same {
		lines = append(lines, fmt.Sprintf("the record of %s asks for other host ports or limits than the runtime", request.Owner.Key))
	}
	if len(rec.Ports) > 0 {
		err = p.withPorts(ctx, settings.Firewall, func(ports hostport.Node) error {
			more, err := ports.Check(rec)
			lines = append(lines, more...)
			return err
		})
	}
	if err != nil {
		return lines, err
	}
	more, err := kernel.CheckLimits(limitOf(rec))
	return append(lines, more...), err
}

// extrasKeys returns the attachments that have a record or the link of a limit.
func (p *Plugin) extrasKeys(ctx context.Context, kernel *host.Host) ([]eni.Key, error) {
	lock, err := p.records().Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	list, err := p.records().All()
	if err != nil {
		p.Log.Warn("some records can't be read", "error", err)
	}
	keys, err := kernel.LimitKeys()
	for _, rec := range list {
		keys = append(keys, rec.Key)
	}
	return keys, err
}

func (p *Plugin) records() podrecord.Folder { return podrecord.Beside(p.Cache.Path) }

// withPorts runs fn under the lock of the records, which guards all host ports of the node.
func (p *Plugin) withPorts(ctx context.Context, firewall ipam.Firewall, fn func(hostport.Node) error) error {
	lock, err := p.records().Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	ports := hostport.Node{Firewall: firewall, Records: p.records(), Lock: lock,
		Owner: func(a netip.Addr) (podrecord.Record, bool, error) { return p.findOwner(ctx, a) }}
	if firewall == ipam.Iptables {
		if ports.Node4, ports.Node6, err = p.nodeAddrs(ctx); err != nil && !nodecache.Unusable(err) {
			return err
		}
	}
	return fn(ports)
}

// findOwner returns the pod that has the address, if it may have ports. It asks the kernel
// first, which knows pods whose line of the node state is damaged, then the node state,
// which knows pods whose link is gone.
func (p *Plugin) findOwner(ctx context.Context, a netip.Addr) (pod podrecord.Record, found bool, err error) {
	kernel, err := host.NewHere()
	if err != nil {
		return pod, false, err
	}
	defer kernel.Close()
	links, err := kernel.PodLinks()
	if err != nil {
		return pod, false, err
	}
	for _, l := range links {
		if slices.Contains(l.Addrs, a) {
			// A pod that asked for none may have the address of one that did.
			if _, asked, err := kernel.PortTag(l.Owner.Key); err != nil || !asked {
				return pod, false, err
			}
			return podrecord.Record{Key: l.Owner.Key, Pod: l.Owner.PodName(), Addrs: l.Addrs}, true, nil
		}
	}
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		for _, one := range hostport.Pods(state.Used(), state.Settings.Firewall) {
			if slices.Contains(one.Addrs, a) {
				pod, found = one, true
			}
		}
		return nil
	})
	return pod, found, err
}

// nodeAddrs returns the primary addresses of ENI 0. Without a usable node cache
// there are none: then nothing is opened, and closing needs none.
func (p *Plugin) nodeAddrs(ctx context.Context) (v4, v6 netip.Addr, err error) {
	err = p.Cache.View(ctx, func(state *ipam.State) error {
		if nic, ok := state.Interface(0); ok {
			v4, v6 = nic.V4.Primary.Addr(), nic.V6.Primary.Addr()
		}
		return nil
	})
	return v4, v6, err
}

func limitOf(rec podrecord.Record) host.Limit {
	return host.Limit{HostDev: netconf.HostDevice(rec.Key), Dev: netconf.LimitDevice(rec.Key),
		Alias: netconf.Alias(eni.Owner{Key: rec.Key, Pod: rec.Pod}), Limits: rec.Limits}
}
