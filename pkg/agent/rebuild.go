package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// rebuild makes the book anew from the cloud and the kernel: at the first start,
// after a reboot, and when it is damaged. Used addresses keep their owners.
func (a *Agent) rebuild(ctx context.Context, old *ipam.State, why error, now time.Duration) error {
	if why == nil {
		why = fmt.Errorf("%d damaged records", len(old.Damaged))
	}
	if !a.view.known || a.holds.active("rebuild", now) {
		return nil
	}
	err := a.build(ctx, now)
	if err != nil {
		a.holds.fail("rebuild", delayRetry, 0, now, a.Rand)
		a.holds.because("rebuild", err.Error())
		return fmt.Errorf("build the node cache: %w", err)
	}
	a.holds.clear("rebuild")
	a.steps++
	a.Log.Info("node cache built", "enis", len(a.view.enis), "reason", why.Error())
	a.Events.Repaired("cache", 1)
	a.resyncAt, a.sightDue, a.restarted, a.rebuilt = now, true, false, true
	return nil
}

func (a *Agent) build(ctx context.Context, now time.Duration) error {
	links, err := a.Kernel.Links(ctx)
	if err != nil {
		return err
	}
	want, waiting := a.wanted(links)
	if len(want.ENIs) == 0 || want.ENIs[0].Index != 0 {
		return fmt.Errorf("the node's own ENI is not there: the cloud shows %d ENIs, without a link on the node: %s", len(a.view.enis), strings.Join(waiting, ", "))
	}
	owners, err := a.Kernel.Owners(ctx)
	if err != nil {
		return err
	}
	merge := func(old *ipam.State) (*ipam.State, error) {
		w := want
		known := map[netip.Addr]bool{}
		for _, line := range want.Addresses {
			known[line.Addr] = true
		}
		if old != nil {
			w.ENIs, w.Addresses = withOld(want, old, known)
		}
		next, err := ipam.Merge(old, w, only(owners, known), now)
		if err == nil {
			next.Drain(a.goingBack(next), now)
		}
		return next, err
	}
	var old *ipam.State
	if err := a.Book.View(ctx, func(s *ipam.State) error { old = s.Clone(); return nil }); err != nil && !a.Unusable(err) {
		return err
	}
	next, err := merge(old)
	if err != nil {
		return err
	}
	if _, err := a.Kernel.Grow(ctx, next); err != nil {
		return err
	}
	for _, addr := range slices.SortedFunc(maps.Keys(owners), netip.Addr.Compare) {
		if !slices.ContainsFunc(next.Addresses, func(line eni.Address) bool { return line.Addr == addr }) {
			o := owners[addr]
			a.Log.Warn("pod has an address that the cloud does not show", "address", addr, "pod", o.PodName())
		}
	}
	return a.Book.Replace(ctx, func(s *ipam.State, _ error) (*ipam.State, error) { return merge(s) })
}

// goingBack returns the addresses of a new book that the cloud may take at any
// moment because it was asked to.
func (a *Agent) goingBack(book *ipam.State) []netip.Addr {
	var addrs []netip.Addr
	id := ids(book)
	for _, line := range book.Addresses {
		if a.mem.Begun[line.Addr] || a.isLeaving(id[line.ENI]) {
			addrs = append(addrs, line.Addr)
		}
	}
	return addrs
}

// wanted is the book that the cloud's answer asks for. ENIs whose link is not
// there yet come later.
func (a *Agent) wanted(links map[string]eni.Interface) (want ipam.State, waiting []string) {
	want.Settings = a.conf.Settings
	f := facts{}
	empty := &ipam.State{}
	for _, nic := range a.view.enis {
		index, ok := f.place(a, empty, links, nic.ID)
		if !ok || index < a.conf.Pool.FirstENI {
			continue
		}
		for _, addr := range nic.Addresses {
			want.Addresses = append(want.Addresses, eni.Address{Addr: addr, ENI: index})
		}
	}
	want.ENIs = f.enis
	return want, f.waiting
}

// withOld adds to the wanted book what only the old one knows: pods may use it,
// and whether it is lost is for later ticks to find out. It notes in known what
// is listed.
func withOld(want ipam.State, old *ipam.State, known map[netip.Addr]bool) ([]eni.Interface, []eni.Address) {
	enis := append([]eni.Interface(nil), want.ENIs...)
	for _, nic := range old.ENIs {
		if !hasENI(&want, nic.ID) {
			enis = append(enis, nic)
		}
	}
	lines := append([]eni.Address(nil), want.Addresses...)
	for _, line := range old.Addresses {
		if !known[line.Addr] {
			known[line.Addr] = true
			lines = append(lines, line)
		}
	}
	var sorted []eni.Address
	for _, nic := range enis {
		for _, line := range lines {
			if line.ENI == nic.Index {
				sorted = append(sorted, line)
			}
		}
	}
	return enis, sorted
}

func only(owners map[netip.Addr]eni.Owner, known map[netip.Addr]bool) map[netip.Addr]eni.Owner {
	kept := map[netip.Addr]eni.Owner{}
	for addr, o := range owners {
		if known[addr] {
			kept[addr] = o
		}
	}
	return kept
}
