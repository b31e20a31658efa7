package host

import (
	"encoding/binary"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Traffic control in the kernel's own words: netlink's types for all kinds of
// queues and filters would add a twentieth to the plugin.

// Handles and parents of queues, see linux/pkt_sched.h.
const tcRoot = 0xffffffff

// bucketHandle is the handle of each token bucket of ours, "454e:". The kernel gives none
// below 8000: by itself, the bandwidth plugin and earlier releases of ours have 1:.
const (
	bucketHandle       = 0x454e0000
	formerBucketHandle = 0x00010000
)

// What package nl does not name.
const tcEthernet = 1 // TC_LINKLAYER_ETHERNET

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
	m := tcMessage(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|flag, link, bucketHandle, tcRoot, 0)
	m.text(unix.TCA_KIND, "tbf")
	m.nest(unix.TCA_OPTIONS, nil, func() {
		// struct tc_tbf_qopt: rate and peak rate as struct tc_ratespec, of three words each, then
		// limit, buffer and MTU. The buffer is in ticks there, in which a large burst overflows, so
		// it is given in bytes behind.
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

// readBucket returns the token bucket that is the link's root queue; found is
// false where another one is.
func (c *conn) readBucket(link int) (t netconf.Bucket, found bool, err error) {
	t, handle, err := c.readRootBucket(link)
	return t, handle != 0, err
}

// readRootBucket is readBucket with the handle, 0 where the root queue is another one.
func (c *conn) readRootBucket(link int) (t netconf.Bucket, handle uint32, err error) {
	b := &batch{}
	// Without NLM_F_ECHO kernels answer nobody, and of the queue that does nothing
	// they tell nothing.
	r := b.add(tcMessage(unix.RTM_GETQDISC, unix.NLM_F_ECHO|unix.NLM_F_ACK, link, 0, tcRoot, 0), "ask for the queue of link %d", link)
	r.get = true
	if err := c.send(b); err != nil || len(r.answer) < nl.SizeofTcMsg {
		return t, 0, err
	}
	for kind, value := range nlmsg.Attributes(r.answer[nl.SizeofTcMsg:]) {
		switch kind {
		case unix.TCA_KIND:
			if textAttr(value) == bucketQueue {
				handle = binary.NativeEndian.Uint32(r.answer[8:])
			}
		case unix.TCA_OPTIONS:
			for kind, value := range nlmsg.Attributes(value) {
				switch {
				case kind == nl.TCA_TBF_PARMS && len(value) >= 28:
					t.Rate, t.Limit = max(t.Rate, uint64(binary.NativeEndian.Uint32(value[8:]))), binary.NativeEndian.Uint32(value[24:])
				case kind == nl.TCA_TBF_RATE64 && len(value) >= 8:
					t.Rate = binary.NativeEndian.Uint64(value)
				}
			}
		}
	}
	return t, handle, nil
}
