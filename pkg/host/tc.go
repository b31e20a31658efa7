package host

import (
	"encoding/binary"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Traffic control in the kernel's own words: netlink's types for all kinds of
// queues and filters would add a twentieth to the plugin.

// Handles and parents of queues, see linux/pkt_sched.h.
const (
	tcRoot          = 0xffffffff
	tcIngress       = 0xfffffff1
	tcIngressHandle = 0xffff0000
	// The same for a queue of the kind "ingress" and for "clsact", which somebody may
	// have put in its place.
	tcIngressFilters = 0xfffffff2
	tcBucketHandle   = 0x00010000
)

// What package nl does not name.
const (
	tcEthernet = 1 // TC_LINKLAYER_ETHERNET
	tcStolen   = 4 // TC_ACT_STOLEN
	tcRedirect = 1 // TCA_EGRESS_REDIR
)

func u32s(list ...uint32) []byte {
	var b []byte
	for _, w := range list {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

// tcMessage begins a message about the queue or filter of a link, struct tcmsg.
func tcMessage(kind, flags uint16, link int, handle, parent, info uint32) message {
	return newMessage(kind, flags, u32s(0, uint32(link), handle, parent, info)...)
}

// addBucket makes the token bucket the root queue of a link that has none.
func (b *batch) addBucket(link int, t netconf.Bucket, label string, object any) *request {
	return b.setBucket(unix.NLM_F_EXCL, link, t, label, object)
}

// setBucket is addBucket with NLM_F_EXCL; with NLM_F_REPLACE it takes the place of
// another queue, as far as that lets it.
func (b *batch) setBucket(flag uint16, link int, t netconf.Bucket, label string, object any) *request {
	m := tcMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|flag, link, tcBucketHandle, tcRoot, 0)
	m.text(unix.TCA_KIND, "tbf")
	m.nest(unix.TCA_OPTIONS, nil, func() {
		// A ratespec each for rate and peak rate, then limit, buffer and MTU. The
		// buffer is given in bytes below: in ticks it would overflow.
		rate := uint32(min(t.Rate, 1<<32-1))
		m.attr(nl.TCA_TBF_PARMS, u32s(tcEthernet<<tcLinklayerShift(), 0, rate, 0, 0, 0, t.Limit, 0, 0))
		m.number(nl.TCA_TBF_BURST, t.Burst)
		if t.Rate > uint64(rate) {
			m.attr(nl.TCA_TBF_RATE64, binary.NativeEndian.AppendUint64(nil, t.Rate))
		}
	})
	return b.add(m, label, object)
}

// tcLinklayerShift is where the second byte of a word is on this machine.
func tcLinklayerShift() int {
	if u32s(1)[0] == 1 {
		return 8
	}
	return 16
}

// addRedirect makes all that comes in by a link take the way out of another.
func (b *batch) addRedirect(from, to int, label string, object any) {
	m := tcMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL, from, tcIngressHandle, tcIngress, 0)
	m.text(unix.TCA_KIND, "ingress")
	m.attr(unix.TCA_OPTIONS, nil)
	b.add(m, label, object).tolerating(unix.EEXIST)
	m = tcMessage(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL, from, 0, tcIngressFilters, redirectInfo())
	m.text(unix.TCA_KIND, "u32")
	m.nest(unix.TCA_OPTIONS, nil, func() {
		m.number(nl.TCA_U32_CLASSID, 0x00010001)
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

// readBucket returns the token bucket that is the link's root queue; found is
// false where another one is.
func (c *conn) readBucket(link int) (t netconf.Bucket, found bool, err error) {
	b := &batch{}
	// Without NLM_F_ECHO kernels answer nobody, and of the queue that does nothing
	// they tell nothing.
	r := b.add(tcMessage(unix.RTM_GETQDISC, unix.NLM_F_ECHO|unix.NLM_F_ACK, link, 0, tcRoot, 0), "ask for the queue of link %d", link)
	r.get = true
	if err := c.send(b); err != nil || len(r.answer) < nl.SizeofTcMsg {
		return t, false, err
	}
	for kind, value := range attributes(r.answer[nl.SizeofTcMsg:]) {
		switch kind {
		case unix.TCA_KIND:
			found = text(value) == "tbf"
		case unix.TCA_OPTIONS:
			for kind, value := range attributes(value) {
				switch {
				case kind == nl.TCA_TBF_PARMS && len(value) >= 28:
					t.Rate, t.Limit = max(t.Rate, uint64(binary.NativeEndian.Uint32(value[8:]))), binary.NativeEndian.Uint32(value[24:])
				case kind == nl.TCA_TBF_RATE64 && len(value) >= 8:
					t.Rate = binary.NativeEndian.Uint64(value)
				}
			}
		}
	}
	return t, found, nil
}

// redirectInfo is priority and protocol of the filter that redirects.
func redirectInfo() uint32 {
	const priority = 1
	return priority<<16 | uint32(nl.Swap16(unix.ETH_P_ALL))
}

// delRedirect removes the filter that leads what comes in by the link elsewhere, and
// whatever else has its priority. There may be none, nor a queue that could have one.
func (b *batch) delRedirect(link int, dev string) {
	b.add(tcMessage(unix.RTM_DELTFILTER, 0, link, 0, tcIngressFilters, redirectInfo()), "remove the filter of %s", dev).
		tolerating(unix.ENOENT, unix.EINVAL)
}

// redirects tells whether a filter leads what comes in by a link to another one.
func (c *conn) redirects(from, to int) (bool, error) {
	list, err := c.list(tcMessage(unix.RTM_GETTFILTER, 0, from, 0, tcIngressFilters, 0))
	return slices.ContainsFunc(list, func(m []byte) bool {
		return len(m) > nl.SizeofTcMsg && redirectTarget(m[nl.SizeofTcMsg:]) == to
	}), err
}

// redirectTarget returns the link that a filter leads to, 0 if it is none that does.
func redirectTarget(filter []byte) int {
	action := attribute(attribute(attribute(filter, unix.TCA_OPTIONS), nl.TCA_U32_ACT), 1)
	parms := attribute(attribute(action, nl.TCA_ACT_OPTIONS), nl.TCA_MIRRED_PARMS)
	if len(parms) < 28 || binary.NativeEndian.Uint32(parms[20:]) != tcRedirect {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(parms[24:])))
}
