package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/conntrack"
	"github.com/enipool/enipool/pkg/netconf"
)

// A packet that met the packet filter just before it changed marks its connection
// the old way just after. It is through in far less than inFlight, and no kernel is
// so busy that movePasses times are not enough.
const (
	inFlight   = 20 * time.Millisecond
	movePasses = 5
)

// moveMarks brings the node to another mask without losing a packet, if remove has
// rules for marks of others: it adds, has the firewall understand the marks of all
// masks, and gives connections the mark that they would have got today. It returns
// a line for each thing it did, and what is left to do.
func (n Node) moveMarks(ctx context.Context, h *host.Host, viewState view, add, remove netconf.Node, fw netconf.Firewall) (did []string, addLeft, removeLeft netconf.Node, fwLeft netconf.Firewall, err error) {
	old := netconf.OldMasks(remove.Rules, fw.Mask)
	if len(old) == 0 {
		return nil, add, remove, fw, nil
	}
	if err := h.ApplyNode(add, netconf.Node{}); err != nil {
		return nil, add, remove, fw, fmt.Errorf("before marks change their mask: %w", err)
	}
	both := fw.Understanding(old)
	lines, err := n.applyFirewall(ctx, h, viewState, both, nil)
	did = append(add.Lines("add "), lines...)
	if err != nil {
		return did, netconf.Node{}, remove, fw, err
	}
	moved, err := moveAll(ctx, old, fw)
	if errors.Is(err, conntrack.ErrUnsupported) {
		// Then rules and firewall know both masks for good, or until a reboot.
		remove.Rules = slices.DeleteFunc(remove.Rules, func(r netconf.Rule) bool { return len(netconf.OldMasks([]netconf.Rule{r}, fw.Mask)) > 0 })
		return did, netconf.Node{}, remove, both, nil
	}
	if moved > 0 {
		did = append(did, fmt.Sprintf("move the marks of %d connections to mask %#08x", moved, fw.Mask))
	}
	return did, netconf.Node{}, remove, fw, err
}

// moveAll moves marks until a second look finds none left to move.
func moveAll(ctx context.Context, masks []uint32, fw netconf.Firewall) (moved int, err error) {
	for pass := range movePasses {
		now := 0
		for _, mask := range masks {
			for _, nic := range fw.ENIs {
				n, err := conntrack.MoveMarks(conntrack.Mark{Value: netconf.Mark(nic.Index, mask), Mask: mask},
					conntrack.Mark{Value: netconf.Mark(nic.Index, fw.Mask), Mask: fw.Mask})
				if err != nil {
					return moved, fmt.Errorf("move connection marks from mask %#08x to %#08x: %w", mask, fw.Mask, err)
				}
				now += n
			}
		}
		if moved += now; now == 0 && pass > 0 {
			return moved, nil
		}
		select {
		case <-time.After(inFlight):
		case <-ctx.Done():
			return moved, ctx.Err()
		}
	}
	return moved, nil
}
