package firewall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// Way is which mark of a flow enipool sets, where.
type Way uint8

// The ways of flows with marks.
const (
	Sent     Way = iota // what a pod sends: enipool marks the packet
	Arriving            // the first packet by an ENI: enipool marks its connection
	Answered            // its answer: enipool gives the packet the mark of the connection
)

// Marked is a flow whose mark chooses the ENI that it, or its answer, leaves by.
type Marked struct {
	Flow
	Way Way
}

// findUnmarked returns a line for each chain of others that takes a flow's mark away for
// certain, or that of its connection.
func findUnmarked(chains []baseChain, w Ways) ([]string, error) {
	var lines, told []string
	for _, m := range w.Marked {
		t := markedWalk{walk: walk{flow: m.Flow}, Marked: m, iptables: w.Backend == ipam.Iptables}
		t.startMarks()
		for _, c := range chains {
			if !t.passesChain(c) {
				continue
			}
			what, err := t.followMarks(c)
			if err != nil {
				return nil, err
			}
			if id := c.table + " " + c.name; what != "" && !slices.Contains(told, id) {
				told = append(told, id)
				lines = append(lines, fmt.Sprintf("%s: chain %s changes the %s; have it leave the bits %#08x alone", c.table, c.name, what, m.Mask))
			}
		}
	}
	return lines, nil
}

// markedWalk follows a packet, and its marks, through all chains in their order.
type markedWalk struct {
	walk
	Marked
	iptables bool // ours are chains of iptables, not chains of their own
	set      bool // ours have marked it
}

func (t *markedWalk) startMarks() {
	switch t.Way {
	case Arriving:
		// From the wire it has no mark, and no connection. Of the bits of others that is not
		// certain when it comes here: not all chains are followed.
		t.mark, t.conn = mark{known: t.Mask}, mark{known: t.Mask}
	case Answered:
		t.conn = t.conn.with(t.Mark, t.Mask)
	}
	t.atOurs = func(chain string) bool {
		if prefix := t.Way.iptChain(); t.iptables && hasOurPrefix(chain, prefix) {
			t.markIt()
		}
		return false
	}
}

// iptChain is how the name of the chain of iptables begins that marks the flow.
func (w Way) iptChain() string {
	if w == Answered {
		return netconf.IptPodsPrefix + "REPLY"
	}
	return netconf.IptChainPrefix + "MARK"
}

func hasOurPrefix(chain, prefix string) bool {
	return netconf.IsIptChain(chain) && strings.HasPrefix(chain, prefix)
}

func (t *markedWalk) markIt() {
	t.set = true
	if t.Way == Arriving {
		t.conn = t.conn.with(t.Mark, t.Mask)
	} else {
		t.mark = t.mark.with(t.Mark, t.Mask)
	}
}

// passesChain tells whether the packet passes the chain, and what happens to marks there counts.
func (t *markedWalk) passesChain(c baseChain) bool {
	routed := c.hook != *nftables.ChainHookPrerouting
	if !t.set && !t.iptables && (routed || c.priority > t.ourPriority()) {
		t.markIt()
	}
	switch {
	case !slices.Contains(c.families, t.Family), !routed && c.priority <= priorityOfConntrack:
		return false
	case t.Way == Sent: // a way is chosen once
		return t.set && !routed && c.kind == nftables.ChainTypeFilter
	case t.Way == Answered: // the first packet alone is translated
		return c.kind == nftables.ChainTypeFilter
	}
	// Before ours there are the services of kube-proxy, thousands of rules.
	return routed || c.kind == nftables.ChainTypeFilter || c.priority > t.ourPriority()
}

// ourPriority is that of ours at hook prerouting.
func (t *markedWalk) ourPriority() nftables.ChainPriority {
	if t.Way == Answered {
		return netconf.NftRepliesPriority
	}
	return netconf.NftMarksPriority
}

// followMarks leads the packet through the chain and returns what is lost there, "" if nothing
// is for certain. What is lost is put right again: the next chain is judged by itself.
func (t *markedWalk) followMarks(c baseChain) (lost string, err error) {
	if _, err := t.followBase(c.rules, c.name); err != nil {
		return "", err
	}
	marks := t.set && t.Way != Arriving && c.hook == *nftables.ChainHookPrerouting
	conn := t.set && t.Way == Arriving || t.Way == Answered
	switch {
	case marks && t.mark.surelyDiffers(t.Mark, t.Mask):
		t.mark = t.mark.with(t.Mark, t.Mask)
		return "mark of " + t.What + ", by which enipool chooses their ENI", nil
	case conn && t.conn.surelyDiffers(t.Mark, t.Mask):
		t.conn = t.conn.with(t.Mark, t.Mask)
		return "connection mark of " + t.What + ", by which enipool sends the answers out by the ENI of the connection", nil
	}
	return "", nil
}
