package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
)

// needsLoopback tells whether the node reaches the pod by its loopback addresses.
func needsLoopback(r podrecord.Record) bool {
	return len(r.Ports) > 0 && slices.ContainsFunc(r.Addrs, netip.Addr.Is4)
}

// restoreLoopback puts back the setting of pods' links without which a host port by
// 127.0.0.1 leads nowhere. The kernel does not announce that it changed.
func (e *extras) restoreLoopback(h *host.Host) (lines []string, err error) {
	for _, r := range slices.Concat(e.records, e.lost) {
		if !needsLoopback(r) {
			continue
		}
		dev := netconf.HostDevice(r.Key)
		wrong, failed := h.CheckLoopback(dev)
		if failed == nil && len(wrong) > 0 {
			failed = h.RouteLoopback(dev)
		}
		switch {
		case errors.Is(failed, unix.ENOENT): // the link goes this moment
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("host ports of pod %s: %w", r.Pod, failed))
		default:
			lines = append(lines, prefixLines("host ports of pod "+r.Pod+": ", wrong)...)
		}
	}
	return lines, err
}
