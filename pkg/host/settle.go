package host

import (
	"net/netip"
	"time"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// settle returns when the kernel has done what it does in the background for a
// new link, normally at once: until then the pod's first packets get lost. Where
// it takes longer than await waits, the pod starts all the same. node is the link as it was last
// read.
func (h *Host) settle(pod *conn, p netconf.Pod, node linkState) {
	// The end that was up before the other drops what it should send until its
	// carrier is noticed. Kernels since 6.8 notice it when they are asked.
	if !node.ready {
		await(func() bool {
			now, err := h.findLink(p.HostDev)
			return err != nil || now.ready
		})
	}
	for _, a := range p.Addrs {
		if a.Prefix.Addr().Is6() {
			// An IPv6 address takes packets once it has its local route.
			await(func() bool { return pod.isLocal(a.Prefix.Addr()) })
		}
	}
}

// await asks, for a tenth of a second at most, until done.
func await(done func() bool) {
	for range 500 {
		if done() {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// isLocal tells whether packets to the address are taken in.
func (c *conn) isLocal(a netip.Addr) bool {
	b := &batch{}
	r := b.getRoute(a, 0)
	const typeAt = 7 // rtm_type in struct rtmsg
	return c.send(b) == nil && len(r.answer) > typeAt && r.answer[typeAt] == unix.RTN_LOCAL
}
