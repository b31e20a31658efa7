package host

import (
	"fmt"

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
// That one is ours by its name. Others limit pods too, on the pod's link: the bandwidth
// plugin, a person. There a bucket is ours by its handle, or beside a link of ours where an
// earlier release made both. One of that release that stands alone is left as it is: it
// limits the pod until its link goes, but no record is made of it.
func (h *Host) foundLimits(pod, wait linkState) (l netconf.Limits, err error) {
	ours := wait.kind == "ifb"
	if ours {
		if l.Egress, _, err = h.foundLimit(wait); err != nil {
			return l, err
		}
	}
	ingress, handle, err := h.foundLimit(pod)
	if handle == bucketHandle || ours && handle == formerBucketHandle {
		l.Ingress = ingress
	}
	return l, err
}

// bucketQueue is the kind of queue that holds packets back.
const bucketQueue = "tbf"

func (h *Host) foundLimit(link linkState) (l netconf.Limit, handle uint32, err error) {
	if link.queue != bucketQueue {
		return l, 0, nil
	}
	b, handle, err := h.conn.readRootBucket(link.index)
	if err != nil || handle == 0 {
		return l, 0, gone(err)
	}
	return b.Restored(), handle, nil
}
