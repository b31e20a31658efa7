// Package conntrack changes and forgets entries of the kernel's connection tracking
// by nfnetlink, in the network namespace of the calling thread.
package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrUnsupported is returned where the kernel does not let anybody see its
// connections: it lacks CONFIG_NF_CT_NETLINK or the module nf_conntrack_netlink.
var ErrUnsupported = errors.New("this kernel has no ctnetlink; load the module nf_conntrack_netlink")

// Mark is a value of the bits of a mask in connection marks.
type Mark struct{ Value, Mask uint32 }

// appendFilter asks for the connections that have the value.
func (m Mark) appendFilter(enc *netlink.AttributeEncoder) {
	enc.Uint32(attrMark, m.Value)
	enc.Uint32(attrMask, m.Mask)
}

// isIn tells whether the connection mark has the value.
func (m Mark) isIn(mark uint32) bool { return mark&m.Mask == m.Value }

// MoveMarks takes the value from out of the mark of every connection that has it,
// and puts the value to into its place. A connection that has a value of to's mask
// already keeps it. Other bits stay as they are. It returns how many it changed.
func MoveMarks(from, to Mark) (int, error) {
	return changeAll(from.appendFilter, func(e entry) (message, bool) {
		if !from.isIn(e.mark) {
			return message{}, false
		}
		change := Mark{to.Value, from.Mask | to.Mask}
		if kept := e.mark & to.Mask &^ from.Mask; kept != 0 {
			change.Value = kept
		}
		return e.setMarkRequest(change), true
	})
}

// Forget deletes the connections that have any of the addresses at either end, before or
// after translation, and any of the marks. It returns how many it deleted. The kernel looks
// for each mark by itself: of many thousands of connections few have one.
func Forget(addrs []netip.Addr, marks ...Mark) (deleted int, err error) {
	if len(addrs) == 0 {
		return 0, nil
	}
	known := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		known[a] = true
	}
	for _, mark := range marks {
		n, err := changeAll(mark.appendFilter, func(e entry) (message, bool) {
			// A kernel that is too old for the filter shows connections of all marks.
			if !mark.isIn(e.mark) || !slices.ContainsFunc(e.addrs, func(a netip.Addr) bool { return known[a] }) {
				return message{}, false
			}
			return e.deleteRequest(), true
		})
		if deleted += n; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// ForgetUnanswered deletes of the connections that nobody has answered those that pick
// picks. It returns how many it deleted.
func ForgetUnanswered(pick func(netconf.Flow) bool) (int, error) {
	return changeAll(filterUnanswered, func(e entry) (message, bool) {
		if e.answered || !pick(e.flow()) {
			return message{}, false
		}
		return e.deleteRequest(), true
	})
}

// ForgetPicked deletes the connections that pick picks. It returns how many it deleted.
func ForgetPicked(pick func(netconf.Flow) bool) (int, error) {
	all := func(*netlink.AttributeEncoder) {}
	return changeAll(all, func(e entry) (message, bool) {
		if !pick(e.flow()) {
			return message{}, false
		}
		return e.deleteRequest(), true
	})
}

// filterUnanswered asks for the connections without an answer: of many thousands that is a few.
func filterUnanswered(enc *netlink.AttributeEncoder) {
	enc.Uint32(attrStatus, 0)
	enc.Uint32(attrStatusMask, seenReply)
}

// message is a request about one connection.
type message = netlink.Message

// changeAll sends what change wants for each connection. The kernel shows those that
// the filter asks for, or all if it is too old for that.
func changeAll(filter func(*netlink.AttributeEncoder), change func(entry) (message, bool)) (int, error) {
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return 0, fmt.Errorf("open conntrack: %w", explainUnsupported(err))
	}
	defer conn.Close()
	// Nothing is sent before the list is through: a change during a dump makes the
	// kernel lose its place.
	var wanted []message
	err = walkConnections(filter, func(e entry) {
		if m, want := change(e); want {
			wanted = append(wanted, m)
		}
	})
	if err != nil {
		return 0, fmt.Errorf("list connections: %w", explainUnsupported(err))
	}
	changed := 0
	for _, m := range wanted {
		_, err := conn.Execute(m)
		if errors.Is(err, unix.ENOENT) {
			continue // it ended meanwhile
		}
		if err != nil {
			return changed, fmt.Errorf("change a connection: %w", err)
		}
		changed++
	}
	return changed, nil
}

// explainUnsupported adds ErrUnsupported to those of the kernel's answers that mean that it
// has no ctnetlink at all.
func explainUnsupported(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("%w (%w)", ErrUnsupported, err)
	}
	return err
}
