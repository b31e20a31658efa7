package host

import (
	"encoding/binary"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What comes in by a pod's link is led to the link of its egress limit by a filter. Other
// programs may have filters for what comes in by it, too. All filters hang on one queue, whoever
// made that.

// Handles and parents, see linux/pkt_sched.h. Each of them is the same for a queue of the
// kind "ingress", which others and earlier releases make, and for "clsact".
const (
	tcIngress        = 0xfffffff1
	tcIngressHandle  = 0xffff0000
	tcIngressFilters = 0xfffffff2
)

// What package nl does not name.
const (
	tcStolen   = 4 // TC_ACT_STOLEN
	tcRedirect = 1 // TCA_EGRESS_REDIR
)

// redirectPriority has our filter come after those of others, which may drop or count
// packets: ours keeps what it gets. The number is a rare one, as one priority can't have
// filters of two kinds.
const redirectPriority = 0xff00 | netconf.Protocol

// redirectClass is in each filter of ours, of any release.
const redirectClass = 0x00010001

// addRedirect makes all that comes in by a link take the way out of another. Where there is a
// queue for filters already, of somebody else, our filter hangs on that. Ours is of the kind
// clsact, on which others can hang filters for both ways.
func (b *batch) addRedirect(from, to int, label string, object any) {
	m := tcMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, from, tcIngressHandle, tcIngress, 0)
	m.text(unix.TCA_KIND, "clsact")
	b.add(m, label, object).tolerating(unix.EEXIST)
	info := redirectPriority<<16 | uint32(nl.Swap16(unix.ETH_P_ALL))
	m = tcMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, from, 0, tcIngressFilters, info)
	m.text(unix.TCA_KIND, "u32")
	m.nest(unix.TCA_OPTIONS, nil, func() {
		m.number(nl.TCA_U32_CLASSID, redirectClass)
		// One key whose mask is empty: it matches everything.
		sel := make([]byte, 16+16)
		sel[0], sel[2] = nl.TC_U32_TERMINAL, 1
		m.attr(nl.TCA_U32_SEL, sel)
		m.nest(nl.TCA_U32_ACT, nil, func() {
			m.nest(1, nil, func() {
				m.text(nl.TCA_ACT_KIND, "mirred")
				m.nest(nl.TCA_ACT_OPTIONS, nil, func() {
					m.attr(nl.TCA_MIRRED_PARMS, u32s(0, 0, tcStolen, 0, 0, tcRedirect, uint32(to)))
				})
			})
		})
	})
	b.add(m, label, object)
}

// redirect is a filter that leads to another link.
type redirect struct {
	handle, info uint32 // which it is among the filters of what comes in
	class        uint32
	to           int // index; 0 once that link is gone
}

// stale tells whether the filter is one of ours whose target is gone.
func (r redirect) stale() bool { return r.to == 0 && r.class == redirectClass }

// redirects lists the filters that lead what comes in by a link to another one.
func (c *conn) redirects(from int) (found []redirect, err error) {
	list, err := c.list(tcMessage(unix.RTM_GETTFILTER, 0, from, 0, tcIngressFilters, 0))
	for _, m := range list {
		if r, ok := parseRedirect(m); ok {
			found = append(found, r)
		}
	}
	return found, err
}

// leads tells whether what comes in by a link is led to the other one.
func (c *conn) leads(from, to int) (bool, error) {
	list, err := c.redirects(from)
	return slices.ContainsFunc(list, func(r redirect) bool { return r.to == to }), err
}

// delStaleRedirects removes the filters of ours that lead to a link that is gone.
func (c *conn) delStaleRedirects(link int, dev string) error {
	list, err := c.redirects(link)
	if err != nil {
		return err
	}
	b := &batch{}
	for _, r := range list {
		if r.stale() {
			b.add(tcMessage(unix.RTM_DELTFILTER, 0, link, r.handle, tcIngressFilters, r.info), "remove the filter of %s", dev).
				tolerating(unix.ENOENT, unix.EINVAL)
		}
	}
	return c.send(b)
}

func parseRedirect(m []byte) (r redirect, ok bool) {
	if len(m) < nl.SizeofTcMsg || textAttr(nlmsg.Attribute(m[nl.SizeofTcMsg:], unix.TCA_KIND)) != "u32" {
		return r, false
	}
	r.handle, r.info = binary.NativeEndian.Uint32(m[8:]), binary.NativeEndian.Uint32(m[16:])
	options := nlmsg.Attribute(m[nl.SizeofTcMsg:], unix.TCA_OPTIONS)
	if class := nlmsg.Attribute(options, nl.TCA_U32_CLASSID); len(class) == 4 {
		r.class = binary.NativeEndian.Uint32(class)
	}
	action := nlmsg.Attribute(nlmsg.Attribute(options, nl.TCA_U32_ACT), 1)
	parms := nlmsg.Attribute(nlmsg.Attribute(action, nl.TCA_ACT_OPTIONS), nl.TCA_MIRRED_PARMS)
	if len(parms) < 28 || binary.NativeEndian.Uint32(parms[20:]) != tcRedirect {
		return r, false
	}
	r.to = int(int32(binary.NativeEndian.Uint32(parms[24:])))
	return r, true
}
