package fastpath

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// harmless are the matches of iptables for IPv4 that compare something of the packet,
// its connection or the machine, and leave no trace. Not among them are those that
// remember or count (connbytes, connlimit, hashlimit, limit, nfacct, quota, rateest,
// recent, statistic), those that may log or set something (bpf, connlabel, osf,
// socket), and all that are not known.
var harmless = strings.Fields(`addrtype ah cgroup cluster connmark conntrack cpu dccp devgroup dscp ecn esp helper icmp iprange
	ipcomp ipvs l2tp length mac mark multiport owner physdev pkttype policy realm rpfilter sctp state string tcp tcpmss time
	tos ttl u32 udp udplite`)

// match reads a match of iptables.
func (r *ruleReader) match(f attributes) {
	name, info := trimZeros(f[unix.NFTA_MATCH_NAME]), f[unix.NFTA_MATCH_INFO]
	revision := decodeNumber(f[unix.NFTA_MATCH_REV])
	switch {
	case name == "comment":
	case name == "conntrack" && revision >= 2 && len(info) >= conntrackSize:
		r.matchConntrack(info)
	case slices.Contains(harmless, name), name == "set" && looksUpOnly(revision, info):
		r.matchSome()
	default:
		r.rule.Does = netconf.Acts
	}
}

// struct xt_conntrack_mtinfo2 and 3 of <linux/netfilter/xt_conntrack.h>: four addresses with
// their masks, the shortest and the longest time that is left, transport and four ports of
// 16 bits each, then flags and masks. In 3 the ends of the ranges of ports stand behind.
const (
	conntrackFlags  = 8*16 + 8 + 10
	conntrackInvert = conntrackFlags + 2
	conntrackState  = conntrackInvert + 2
	conntrackSize   = conntrackState + 2
)

// matchConntrack reads a match of the connection, of which the state is known.
func (r *ruleReader) matchConntrack(info []byte) {
	const stateOnly, established = 1, 1 << 1 // XT_CONNTRACK_STATE, XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED)
	flags, invert := binary.NativeEndian.Uint16(info[conntrackFlags:]), binary.NativeEndian.Uint16(info[conntrackInvert:])
	states := binary.NativeEndian.Uint16(info[conntrackState:])
	if flags&stateOnly != 0 && (states&established != 0) == (invert&stateOnly != 0) {
		r.rule.Match = netconf.MatchesNone
		return
	}
	if flags&^stateOnly != 0 {
		r.matchSome()
	}
}

// looksUpOnly tells whether a match of an ipset asks for no more than membership. One
// that compares the set's counters depends on packets that came before.
func looksUpOnly(revision uint32, info []byte) bool {
	// struct xt_set_info_match_v1, _v3 and _v4 of <linux/netfilter/xt_set.h>: by revision
	// where the operators are that packets and bytes are compared with.
	operators, known := map[uint32][]int{1: {}, 2: {}, 3: {8, 24}, 4: {16, 32}}[revision]
	return known && !slices.ContainsFunc(operators, func(at int) bool { return at >= len(info) || info[at] != 0 })
}
