package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/podrecord"
)

// extras are the records of what pods asked for beyond their addresses.
type extras struct {
	folder  podrecord.Folder
	lock    *podrecord.Lock
	records []podrecord.Record
	stale   []podrecord.Record // of attachments that the node state does not know
	lost    []podrecord.Record // rebuilt from the kernel, see findLost
	pods    []podrecord.Record // of all living pods, without ports and limits
	damaged podrecord.Errors
}

// openExtras reads the records under their lock. Until they are closed no pod's ports change,
// so what is decided by them is still right when it is done. Records that are lost are
// rebuilt from what the kernel holds.
func (n Node) openExtras(ctx context.Context, h *host.Host, viewState view, filter ipam.Firewall) (*extras, error) {
	e := &extras{folder: podrecord.Beside(n.Cache.Path)}
	var err error
	// Less than the lock's own patience: the agent's loop must not hang in it, and comes back.
	wait, cancel := context.WithTimeout(ctx, podrecord.LockTimeout)
	defer cancel()
	if e.lock, err = e.folder.Lock(wait); err != nil {
		return nil, err
	}
	e.records, err = e.folder.All()
	if podrecord.Unreadable(err) && errors.As(err, &e.damaged) {
		err = nil
	}
	if err == nil {
		err = e.sort(ctx, viewState, n.Cache, filter)
	}
	if err == nil {
		err = e.findLost(ctx, h, filter)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *extras) close() { e.lock.Unlock() }

// sort sets aside the stale records. A pod that got its address since viewState was made
// is in the cache, and one that was found in the kernel after the cache was lost is in
// viewState only. Without a usable cache no record is known to be stale.
func (e *extras) sort(ctx context.Context, viewState view, cache nodecache.Cache, filter ipam.Firewall) error {
	var used []eni.Address
	note := func(s *ipam.State) error { used = append(used, s.Used()...); return nil }
	lost := cache.View(ctx, note)
	if lost != nil && !nodecache.Unusable(lost) {
		return lost
	}
	if err := viewState(ctx, note); err != nil {
		return err
	}
	e.pods = hostport.Pods(used, filter)
	if lost != nil {
		return nil
	}
	owned := map[eni.Key]bool{}
	for _, a := range used {
		owned[a.Owner.Key] = true
	}
	var known []podrecord.Record
	for _, r := range e.records {
		if owned[r.Key] {
			known = append(known, r)
		} else {
			e.stale = append(e.stale, r)
		}
	}
	e.records = known
	return nil
}

// ports returns the host ports that should be open.
func (e *extras) ports() []netconf.PodPorts {
	return hostport.Wanted(slices.Concat(e.records, e.lost))
}

// applyFirewall makes the packet filter hold fw and the host ports of all pods, and has
// the kernel forget what began without it. The addresses of fresh, sorted, are new to the filter and
// have no flows: that they join is no repair.
func (n Node) applyFirewall(ctx context.Context, h *host.Host, viewState view, fw netconf.Firewall, fresh []netip.Addr) ([]string, error) {
	lines, did, err := n.applyExtras(ctx, h, viewState, &fw)
	lacked := slices.ContainsFunc(did.Admits, func(a netip.Addr) bool {
		_, joins := slices.BinarySearchFunc(fresh, a, netip.Addr.Compare)
		return !joins
	})
	if did.Translates || lacked { // also if something else went wrong: the next repair finds nothing to change
		lines = append(lines, forgetUntranslated(ctx, h, fw)...)
	}
	if did.Redraws {
		lines = append(lines, forgetMisdirected(ctx, h, viewState)...)
	}
	return lines, err
}

// applyExtras makes the packet filter hold fw, to which it adds the host ports of all
// pods. It returns what it changed of the filter. Records of pods that are gone go when
// their ports are closed.
func (n Node) applyExtras(ctx context.Context, h *host.Host, viewState view, fw *netconf.Firewall) (lines []string, did firewall.Change, err error) {
	e, err := n.openExtras(ctx, h, viewState, fw.Backend)
	if err != nil {
		return nil, did, err
	}
	defer e.close()
	if err := e.fill(fw, h); err != nil {
		return nil, did, err
	}
	// A record that can't be written keeps no port closed: the next repair writes it.
	lines, notWritten := e.writeLost()
	did, err = firewall.Apply(ctx, *fw)
	lines, err = append(lines, did.Lines...), errors.Join(notWritten, err)
	if err != nil {
		return lines, did, err
	}
	removed, err := e.removeStale(h)
	loopback, loopbackErr := e.restoreLoopback(h)
	restored, limitErr := e.restoreLimits(h)
	tagged, tagErr := e.restoreTags(h)
	return slices.Concat(lines, removed, loopback, restored, tagged), did, errors.Join(err, loopbackErr, limitErr, tagErr)
}

// fill adds to the firewall what the node state does not say.
func (e *extras) fill(fw *netconf.Firewall, h *host.Host) (err error) {
	fw.Ports = e.ports()
	if fw.Services, err = serviceAddrs(h); err != nil {
		return err
	}
	fw.DropSpoofed4, err = h.HasAddressedPodLink()
	return err
}

// serviceAddrs returns the addresses of services that stand on the node, sorted.
func serviceAddrs(h *host.Host) ([]netip.Addr, error) {
	list, err := h.Services()
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list), err
}

// restoreLimits puts back what somebody took of pods' limits. The plugin sets and clears
// them under the lock too, so nothing is missing just because it is at work.
func (e *extras) restoreLimits(h *host.Host) ([]string, error) {
	var lines []string
	var errs []error
	for _, r := range e.records {
		restored, err := h.RestoreLimits(limitOf(r))
		lines = append(lines, prefixLines("limit "+r.Pod+": ", restored)...)
		if err != nil {
			errs = append(errs, &netconf.LimitError{Pod: r.Pod, Err: err})
		}
	}
	return lines, errors.Join(errs...)
}

func limitOf(r podrecord.Record) host.Limit {
	return host.Limit{HostDev: netconf.HostDevice(r.Key), Dev: netconf.LimitDevice(r.Key),
		Alias: netconf.Alias(eni.Owner{Key: r.Key, Pod: r.Pod}), Limits: r.Limits}
}

func (e *extras) removeStale(h *host.Host) ([]string, error) {
	var lines []string
	var errs []error
	for _, r := range e.stale {
		linked, err := h.HasLink(netconf.HostDevice(r.Key))
		if err == nil && linked {
			continue // its sandbox may be alive: pool check tells of it
		}
		if err == nil {
			err = h.ClearLimits(netconf.LimitDevice(r.Key))
		}
		if err == nil {
			err = e.folder.Remove(r.Key)
		}
		if errs = append(errs, err); err == nil {
			lines = append(lines, fmt.Sprintf("remove record of host ports and limits of %s, which is gone", r.Pod))
		}
	}
	return lines, errors.Join(errs...)
}

// checkFirewall compares the packet filter with fw, and host ports and limits with
// their records.
func (n Node) checkFirewall(ctx context.Context, h *host.Host, fw netconf.Firewall) ([]finding, error) {
	e, err := n.openExtras(ctx, h, n.Cache.View, fw.Backend)
	if err != nil {
		return nil, err
	}
	defer e.close()
	if err := e.fill(&fw, h); err != nil {
		return nil, err
	}
	rules, err := firewall.Diff(ctx, fw)
	var found []finding
	for _, rule := range rules {
		// What a set lacks may change while pods come and go, that it lacks something is enough.
		what, _, _ := strings.Cut(rule, " right:")
		found = append(found, finding{line: "firewall: " + rule + n.remedy("`enipoolctl pool load` does it"), what: what})
	}
	var lines []string
	for _, r := range e.stale {
		lines = append(lines, fmt.Sprintf("host ports or limits of %s are recorded, which has no address", r.Pod)+n.remedy("`enipoolctl pool load` removes them"))
	}
	lines = append(lines, e.describeLost(n.remedy("`enipoolctl pool load` writes it again"))...)
	found = append(found, plainFindings(lines)...)
	untagged, tagErr := e.untagged(h)
	err = errors.Join(err, tagErr)
	for _, r := range untagged {
		line := fmt.Sprintf("the link of pod %s, which has host ports, lacks their tag", r.Pod)
		found = append(found, finding{line: line + n.remedy("`enipoolctl pool load` puts it back"), what: line, subject: netconf.HostDevice(r.Key)})
	}
	for _, r := range e.records {
		wrong, limitErr := h.CheckLimits(limitOf(r))
		if needsLoopback(r) {
			more, loopbackErr := h.CheckLoopback(netconf.HostDevice(r.Key))
			wrong, limitErr = append(wrong, more...), errors.Join(limitErr, loopbackErr)
		}
		for _, line := range wrong {
			line = r.Pod + ": " + line
			found = append(found, finding{line: line + n.remedy("`enipoolctl pool load` puts it back"), what: line, subject: netconf.HostDevice(r.Key)})
		}
		err = errors.Join(err, limitErr)
	}
	return found, err
}
