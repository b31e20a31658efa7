package host

import (
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
)

// FoundLimits returns the limits of ours that the kernel holds for those of the
// attachments that have any.
func (h *Host) FoundLimits(keys []eni.Key) (map[eni.Key]netconf.Limits, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	list, _, err := h.links()
	if err != nil {
		return nil, err
	}
	links := make(map[string]linkState, len(list))
	for _, l := range list {
		links[l.name] = l
	}
	found := map[eni.Key]netconf.Limits{}
	for _, k := range keys {
		pod, wait := links[netconf.HostDevice(k)], links[netconf.LimitDevice(k)]
		l, err := h.foundLimits(pod, wait)
		if err != nil {
			return nil, fmt.Errorf("read limits of %s: %w", k, err)
		}
		if l != (netconf.Limits{}) {
			found[k] = l
		}
	}
	return found, nil
}

// foundLimits reads the queues of a pod's link and of the one that what it sends waits on.
func (h *Host) foundLimits(pod, wait linkState) (l netconf.Limits, err error) {
	if wait.kind == "ifb" {
		if l.Egress, err = h.foundLimit(wait); err != nil {
			return l, err
		}
	} else if pod.queue == bucketQueue {
		// What is led to a link that is not ours is limited by another plugin.
		list, err := h.conn.redirects(pod.index)
		if err != nil || slices.ContainsFunc(list, func(r redirect) bool { return !r.stale() }) {
			return l, gone(err)
		}
	}
	l.Ingress, err = h.foundLimit(pod)
	return l, err
}

// bucketQueue is the kind of queue that holds packets back.
const bucketQueue = "tbf"

func (h *Host) foundLimit(link linkState) (netconf.Limit, error) {
	if link.queue != bucketQueue {
		return netconf.Limit{}, nil
	}
	b, found, err := h.conn.readBucket(link.index)
	if notFound(err) || !found {
		return netconf.Limit{}, gone(err)
	}
	return b.Restored(), err
}
