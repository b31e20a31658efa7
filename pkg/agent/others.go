package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// learnOthers notes which addresses others hold and which they hold no more, when the
// kernel is due to be looked at, and returns the cache.
func (a *Agent) learnOthers(ctx context.Context, cached *ipam.State, now time.Duration) (*ipam.State, error) {
	if !a.seesOthers(now) && !a.links.serves(cached) || a.backoffs.active(of(notices), now) {
		return cached, nil
	}
	cached, err := a.read(ctx) // a comparison of the kernel may have renamed links in it
	if err == nil {
		err = a.lookForOthers(ctx, cached, now)
	}
	if err != nil {
		a.backOff(of(notices), err, now)
		return cached, fmt.Errorf("look for addresses that others hold: %w", err)
	}
	a.backoffs.clear(of(notices))
	a.sawOthers(now + a.resyncPeriod())
	return a.read(ctx)
}

// lookForOthers reads the kernel and writes down what it says of the cache's addresses.
func (a *Agent) lookForOthers(ctx context.Context, cached *ipam.State, now time.Duration) error {
	o, err := a.Kernel.Occupancy(ctx)
	if err != nil {
		return err
	}
	a.tellShared(o.Shared(cached))
	if cached, err = a.forgetOthers(ctx, o, cached); err != nil {
		return err
	}
	gone := o.NoLongerHeld(cached)
	if len(gone) == 0 && !newlyHeld(o, cached) {
		return nil
	}
	if len(gone) > 0 {
		// The kernel comes first, as for every address that may be handed out.
		next := cached.Clone()
		next.CoolHeld(gone, now)
		if gone, err = a.growKernelFor(ctx, next, gone); err != nil {
			return err
		}
	}
	var held, free []netip.Addr
	err = a.Cache.Update(ctx, func(s *ipam.State) error {
		causes := o.Held(s)
		s.CancelRelease(a.notBegun(causes), now)
		held, free = s.MarkHeld(causes, now), s.CoolHeld(among(gone, setOf(o.NoLongerHeld(s))), now)
		return nil
	})
	if err != nil {
		return err
	}
	a.unsynced = a.unsynced || len(held) > 0
	a.tellHeld(held, o.Held(cached))
	a.logAddresses("free", free, "others hold them no more")
	return nil
}

// forgetOthers takes out of the cache what others hold no more on ENIs below the first one for pods,
// and returns the cache. The plugin whose pod had it may give it to its next one, and nothing in the
// kernel would tell: only people can know that it is to go back to the cloud.
func (a *Agent) forgetOthers(ctx context.Context, o netconf.Occupancy, cached *ipam.State) (*ipam.State, error) {
	if !a.view.known || len(a.keptByOthers(o, cached)) == 0 {
		return cached, nil
	}
	var forgotten []netip.Addr
	err := a.Cache.Replace(ctx, func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		forgotten = s.DropHeld(a.keptByOthers(o, s))
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	a.logAddresses("forget", forgotten, "others held them on an ENI that gets no addresses for pods")
	return a.read(ctx)
}

// keptByOthers returns the addresses on such ENIs that others held and the kernel shows no more of. Those
// of an ENI whose link was away for a while were nobody's.
func (a *Agent) keptByOthers(o netconf.Occupancy, cached *ipam.State) (addrs []netip.Addr) {
	for _, line := range cached.HeldAddresses() {
		if line.ENI < a.firstIndex() && !ipam.IsNoLink(line.HeldBy) {
			addrs = append(addrs, line.Addr)
		}
	}
	if len(addrs) == 0 { // nearly always
		return nil
	}
	return among(addrs, setOf(o.NoLongerHeld(cached)))
}

// tellHeld logs which addresses others were found to hold.
func (a *Agent) tellHeld(addrs []netip.Addr, causes map[netip.Addr]string) {
	for _, addr := range addrs {
		a.steps++
		if ipam.IsNoLink(causes[addr]) { // which is told of the ENI
			continue
		}
		a.Log.Warn("address is held by others", "address", addr, "by", causes[addr])
	}
}

// newlyHeld tells whether the cache does not say yet what the kernel shows.
func newlyHeld(o netconf.Occupancy, cached *ipam.State) bool {
	causes := o.Held(cached)
	return slices.ContainsFunc(cached.Addresses, func(line eni.Address) bool {
		cause, held := causes[line.Addr]
		return held && (line.State != eni.Held || line.HeldBy != cause)
	})
}

// notBegun returns those of the addresses of which the cloud has not heard that it
// should take them back. What it took by itself is not the node's any more, and may be an ENI's
// primary address by now.
func (a *Agent) notBegun(causes map[netip.Addr]string) []netip.Addr {
	if a.view.operated {
		return nil // what is releasing may be in a write that is under way
	}
	var addrs []netip.Addr
	at := a.view.places()
	for addr := range causes {
		if !a.mem.Begun[addr] && (!a.view.known || at[addr] != "") {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func setOf[K comparable](list []K) map[K]bool {
	set := make(map[K]bool, len(list))
	for _, k := range list {
		set[k] = true
	}
	return set
}

// tellShared logs what is new of the addresses that a pod of ours has and others claim.
func (a *Agent) tellShared(lines []string) {
	for _, line := range lines {
		if !slices.Contains(a.status.Shared, line) {
			a.Log.Warn("address is claimed twice", "cause", line)
		}
	}
	a.status.Shared = lines
}

// heldLines tells people what others hold.
func heldLines(cached *ipam.State) []string {
	var lines []string
	for _, line := range heldByOthers(cached) {
		lines = append(lines, ipam.HeldLine(line))
	}
	return lines
}

// heldByOthers returns the held addresses but for those of ENIs without a link, which nobody else has.
func heldByOthers(cached *ipam.State) []eni.Address {
	return slices.DeleteFunc(cached.HeldAddresses(), func(line eni.Address) bool { return ipam.IsNoLink(line.HeldBy) })
}

// heldProblem says in one line that others hold addresses which pods could use.
func heldProblem(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d addresses are held by others; %s", len(lines), lines[0])
}

// servedByOthers is how many pods of the node have an address by another plugin: while
// they last they need none of ours. The node's own addresses are no pod's, and those of an
// ENI without a link are nobody's.
func servedByOthers(cached *ipam.State) int {
	var counts [eni.IPv6 + 1]int
	for i := range cached.Addresses {
		if line := &cached.Addresses[i]; line.State == eni.Held && !strings.HasPrefix(line.HeldBy, netconf.NodeAddress) && !ipam.IsNoLink(line.HeldBy) {
			counts[line.Family()]++
		}
	}
	return largestOf(counts[:])
}
