package host

import (
	"encoding/binary"
	"fmt"

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
	tcBucketHandle  = 0x00010000
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

func zeroEnded(s string) []byte { return append([]byte(s), 0) }

// tcRequest is a message about the queue or filter of a link.
func tcRequest(kind, flags int, link int, handle, parent, info uint32) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(link), Handle: handle, Parent: parent, Info: info})
	return r
}

func tcAdd(kind, link int, handle, parent, info uint32, name string, fill func(options *nl.RtAttr)) error {
	r := tcRequest(kind, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, link, handle, parent, info)
	r.AddData(nl.NewRtAttr(nl.TCA_KIND, zeroEnded(name)))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	fill(options)
	r.AddData(options)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// addBucket makes the token bucket the link's root queue.
func addBucket(link int, b netconf.Bucket) error {
	return tcAdd(unix.RTM_NEWQDISC, link, tcBucketHandle, tcRoot, 0, "tbf", func(options *nl.RtAttr) {
		// A ratespec each for rate and peak rate, then limit, buffer and MTU. The
		// buffer is given in bytes below: in ticks it would overflow.
		rate := uint32(min(b.Rate, 1<<32-1))
		options.AddRtAttr(nl.TCA_TBF_PARMS, u32s(tcEthernet<<tcLinklayerShift(), 0, rate, 0, 0, 0, b.Limit, 0, 0))
		options.AddRtAttr(nl.TCA_TBF_BURST, u32s(b.Burst))
		if b.Rate > uint64(rate) {
			options.AddRtAttr(nl.TCA_TBF_RATE64, binary.NativeEndian.AppendUint64(nil, b.Rate))
		}
	})
}

// tcLinklayerShift is where the second byte of a word is on this machine.
func tcLinklayerShift() int {
	if u32s(1)[0] == 1 {
		return 8
	}
	return 16
}

// addRedirect makes all that comes in by a link take the way out of another.
func addRedirect(from, to int) error {
	err := tcAdd(unix.RTM_NEWQDISC, from, tcIngressHandle, tcIngress, 0, "ingress", func(*nl.RtAttr) {})
	if err != nil {
		return err
	}
	const priority = 1
	return tcAdd(unix.RTM_NEWTFILTER, from, 0, tcIngressHandle, priority<<16|uint32(nl.Swap16(unix.ETH_P_ALL)), "u32", func(options *nl.RtAttr) {
		options.AddRtAttr(nl.TCA_U32_CLASSID, u32s(0x00010001))
		// One key whose mask is empty: it matches everything.
		sel := make([]byte, 16+16)
		sel[0], sel[2] = nl.TC_U32_TERMINAL, 1
		options.AddRtAttr(nl.TCA_U32_SEL, sel)
		action := options.AddRtAttr(nl.TCA_U32_ACT, nil).AddRtAttr(1, nil)
		action.AddRtAttr(nl.TCA_ACT_KIND, zeroEnded("mirred"))
		action.AddRtAttr(nl.TCA_ACT_OPTIONS, nil).AddRtAttr(nl.TCA_MIRRED_PARMS, u32s(0, 0, tcStolen, 0, 0, tcRedirect, uint32(to)))
	})
}

// readBucket returns the token bucket that is the link's root queue; found is
// false where another one is.
func readBucket(link int) (b netconf.Bucket, found bool, err error) {
	// Without NLM_F_ECHO kernels answer nobody.
	list, err := tcRequest(unix.RTM_GETQDISC, unix.NLM_F_ECHO|unix.NLM_F_ACK, link, 0, tcRoot, 0).Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
	if err != nil || len(list) == 0 {
		return b, false, err
	}
	attrs, err := nl.ParseRouteAttr(list[0][nl.SizeofTcMsg:])
	if err != nil {
		return b, false, fmt.Errorf("parse qdisc: %w", err)
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case nl.TCA_KIND:
			found = string(a.Value) == "tbf\x00"
		case nl.TCA_OPTIONS:
			parts, err := nl.ParseRouteAttr(a.Value)
			if err != nil {
				return b, false, fmt.Errorf("parse qdisc: %w", err)
			}
			for _, p := range parts {
				switch {
				case p.Attr.Type == nl.TCA_TBF_PARMS && len(p.Value) >= 28:
					b.Rate, b.Limit = max(b.Rate, uint64(binary.NativeEndian.Uint32(p.Value[8:]))), binary.NativeEndian.Uint32(p.Value[24:])
				case p.Attr.Type == nl.TCA_TBF_RATE64 && len(p.Value) >= 8:
					b.Rate = binary.NativeEndian.Uint64(p.Value)
				}
			}
		}
	}
	return b, found, nil
}

// redirects tells whether the link has a filter that leads elsewhere.
func redirects(link int) (bool, error) {
	list, err := dump(func() ([][]byte, error) {
		return tcRequest(unix.RTM_GETTFILTER, unix.NLM_F_DUMP, link, 0, tcIngressHandle, 0).Execute(unix.NETLINK_ROUTE, unix.RTM_NEWTFILTER)
	})
	return len(list) > 0, err
}
