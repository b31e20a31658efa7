package host

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// RestoreLimits puts right what CheckLimits finds, and returns a line for each. Without
// the pod's link there is nothing to limit: the pod is on its way out, or whoever looks
// at links tells. To be called while nobody else sets or clears the pod's limits.
func (h *Host) RestoreLimits(l Limit) ([]string, error) {
	lines, err := h.CheckLimits(l)
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	link, err := h.findLink(l.HostDev)
	if notFound(err) {
		return nil, nil
	}
	if err == nil && l.Ingress != (netconf.Limit{}) {
		err = h.putBucket(link.index, l.Ingress.Bucket(), l.HostDev)
	}
	if err == nil && l.Egress != (netconf.Limit{}) {
		err = h.restoreEgress(link, l)
	}
	if notFound(err) { // a link of it went meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("restore limits: %w", err)
	}
	return lines, nil
}

func (h *Host) restoreEgress(link linkState, l Limit) error {
	if err := h.conn.delStaleRedirects(link.index, l.HostDev); err != nil {
		return err
	}
	wait, err := h.findLink(l.Dev)
	if notFound(err) {
		l.Ingress = netconf.Limit{}
		return h.SetLimits(l)
	}
	if err == nil {
		err = h.putBucket(wait.index, l.Egress.Bucket(), l.Dev)
	}
	if err != nil {
		return err
	}
	leads, err := h.conn.leads(link.index, wait.index)
	if err != nil {
		return err
	}
	b := &batch{}
	if !wait.up {
		b.setUp(wait.index, l.Dev)
	}
	if leads {
		return h.conn.send(b)
	}
	b.addRedirect(link.index, wait.index, "lead what comes in by %s to "+l.Dev, l.HostDev)
	if err = h.conn.send(b); errors.Is(err, unix.EOPNOTSUPP) {
		// A filter there would be for all links that share it.
		return fmt.Errorf("%w: another program made its filters a block that links share; `tc qdisc del dev %s clsact` takes it away", err, l.HostDev)
	}
	return err
}

// putBucket makes the token bucket the link's root queue, whatever is there. What can't
// become one goes first, with the packets that wait in it.
func (h *Host) putBucket(link int, want netconf.Bucket, dev string) error {
	const label = "limit what goes out of %s"
	have, found, err := h.conn.readBucket(link)
	have.Burst = want.Burst // see checkBucket
	if err != nil || found && have == want {
		return err
	}
	b := &batch{}
	replaced := b.setBucket(unix.NLM_F_REPLACE, link, want, label, dev).tolerating(unix.EINVAL, unix.EEXIST, unix.EOPNOTSUPP)
	if err := h.conn.send(b); err != nil || replaced.done() {
		return err
	}
	b = &batch{}
	b.add(tcMessage(unix.RTM_DELQDISC, 0, link, 0, tcRoot, 0), "remove the queue of %s", dev)
	b.addBucket(link, want, label, dev)
	return h.conn.send(b)
}
