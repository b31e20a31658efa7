package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

// A record may be lost or damaged while its pod lives. What the kernel holds for the pod is
// right all the same: it stays, and the record is rebuilt from it.

// delTime is longer than a DEL takes between the pod's record and the link of its limits.
const delTime = 100 * time.Millisecond

// findLost rebuilds the records of living pods whose own can't be read. Ports that a stale
// record asks for are left out, and so are ports that lead to a pod that asked for none, which
// are those of its address's former pod: both are to be closed. The links of limits are not
// under the lock of the records: a pod of which only those are left may be leaving, so the
// kernel is read twice.
func (e *extras) findLost(ctx context.Context, h *host.Host, filter ipam.Firewall) error {
	if len(e.pods) == 0 {
		return nil
	}
	have, err := hostport.Found(filter, e.pods)
	if err != nil {
		return err
	}
	rebuild := func() ([]podrecord.Record, error) {
		limits, err := h.FoundLimits(e.unrecorded())
		if err != nil {
			return nil, err
		}
		return withoutInherited(h, hostport.Lost(e.pods, slices.Concat(e.records, e.stale), have, limits))
	}
	// A DEL holds the lock of the records while it closes ports: of these none is on its way out.
	if e.lost, err = rebuild(); err != nil || !slices.ContainsFunc(e.lost, onlyLimited) {
		return err
	}
	select {
	case <-time.After(delTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	e.lost, err = rebuild()
	return err
}

// withoutInherited returns the records without the ports of pods that asked for none.
func withoutInherited(h *host.Host, lost []podrecord.Record) (sure []podrecord.Record, err error) {
	for _, r := range lost {
		if len(r.Ports) > 0 {
			_, asked, err := h.PortTag(r.Key)
			if err != nil {
				return nil, err
			}
			if !asked {
				r.Ports = nil
			}
		}
		if !r.Extras.IsZero() {
			sure = append(sure, r)
		}
	}
	return sure, nil
}

// untagged returns the pods with host ports whose links, as far as they are there, do not
// say so any more. Their records are right, and would be lost with their ports.
func (e *extras) untagged(h *host.Host) (list []podrecord.Record, err error) {
	for _, r := range e.records {
		if len(r.Ports) == 0 {
			continue
		}
		linked, tagged, err := h.PortTag(r.Key)
		if err != nil {
			return nil, err
		}
		if linked && !tagged {
			list = append(list, r)
		}
	}
	return list, nil
}

// restoreTags puts the tags back.
func (e *extras) restoreTags(h *host.Host) (lines []string, err error) {
	list, err := e.untagged(h)
	for _, r := range list {
		failed := h.TagPorts(r.Key)
		if err = errors.Join(err, failed); failed == nil {
			lines = append(lines, fmt.Sprintf("tag the link of pod %s, which has host ports", r.Pod))
		}
	}
	return lines, err
}

func onlyLimited(r podrecord.Record) bool { return len(r.Ports) == 0 }

// unrecorded returns the living attachments without a record that can be read.
func (e *extras) unrecorded() []eni.Key {
	recorded := map[eni.Key]bool{}
	for _, r := range e.records {
		recorded[r.Key] = true
	}
	var keys []eni.Key
	for _, p := range e.pods {
		if !recorded[p.Key] {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// writeLost writes the records that were rebuilt and returns a line for each.
func (e *extras) writeLost() (lines []string, err error) {
	for _, r := range e.lost {
		if e.isNewer(r.Key) {
			continue // it says more than the kernel: the release that wrote it may come back
		}
		if failed := e.folder.Write(r); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		lines = append(lines, fmt.Sprintf("record of pod %s was lost; rebuilt from the kernel: %s", r.Pod, describeExtras(r.Extras)))
	}
	return lines, err
}

// isNewer tells whether a later release wrote the attachment's record.
func (e *extras) isNewer(k eni.Key) bool {
	return slices.ContainsFunc(e.damaged, func(d *podrecord.FileError) bool { return d.Of(k) && errors.Is(d, podrecord.ErrVersion) })
}

// describeLost returns a line for each record that is lost or damaged.
func (e *extras) describeLost(remedy string) (lines []string) {
	remade := func(k eni.Key) bool {
		return slices.ContainsFunc(e.lost, func(r podrecord.Record) bool { return r.Key == k })
	}
	for _, r := range e.lost {
		if e.isNewer(r.Key) {
			continue
		}
		lines = append(lines, fmt.Sprintf("record of pod %s was lost; the kernel has %s", r.Pod, describeExtras(r.Extras))+remedy)
	}
	for _, d := range e.damaged {
		at := slices.IndexFunc(e.pods, func(p podrecord.Record) bool { return d.Of(p.Key) })
		switch {
		case errors.Is(d, podrecord.ErrVersion):
			lines = append(lines, d.Error()+"; what the kernel has for it stays")
		case at < 0:
			lines = append(lines, fmt.Sprintf("%v; its pod is gone: remove the file", d))
		case !remade(e.pods[at].Key):
			lines = append(lines, fmt.Sprintf("%v; delete pod %s, for which the kernel has no host ports or limits", d, e.pods[at].Pod))
		}
	}
	return lines
}

// describeExtras names the ports and limits.
func describeExtras(x netconf.Extras) string {
	var words []string
	for _, p := range x.Ports {
		words = append(words, p.String())
	}
	for _, l := range []struct {
		name string
		netconf.Limit
	}{{"ingress", x.Limits.Ingress}, {"egress", x.Limits.Egress}} {
		if l.Limit != (netconf.Limit{}) {
			words = append(words, fmt.Sprintf("%s limit %d bit/s", l.name, l.Rate))
		}
	}
	return strings.Join(words, ", ")
}
