package fastpath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of <linux/xfrm.h>.
const (
	xfrmGetDefault   = 0x28 // XFRM_MSG_GETDEFAULT
	xfrmSPDInfo      = 1    // XFRMA_SPD_INFO
	xfrmDefaultBlock = 1    // XFRM_USERPOLICY_BLOCK
	flagsSize        = 4    // of what stands before the attributes of an answer about numbers
)

// ipsecDecides tells whether a forwarded IPv4 packet may be encrypted or refused by
// an IPsec policy. Policies of sockets do not concern forwarded packets. The
// kernel is asked for the number of policies first; only where there are any they are listed, to tell
// IPv4 from IPv6.
func ipsecDecides() (bool, error) {
	messages, err := askXfrm(nl.XFRM_MSG_GETSPDINFO)
	if unknownProtocol(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	blocked, err := blockedByDefault()
	if err != nil || blocked {
		return blocked, err
	}
	if saysNoPolicies(messages) {
		return false, nil
	}
	policies, err := netlink.XfrmPolicyList(netlink.FAMILY_V4)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(policies, func(p netlink.XfrmPolicy) bool { return p.Dir <= netlink.XFRM_DIR_FWD }), nil
}

// saysNoPolicies tells whether the kernel's answer says that there are no policies.
func saysNoPolicies(messages [][]byte) bool {
	// Of struct xfrmu_spdinfo: the numbers of policies of incoming, outgoing and forwarded
	// packets. Those of sockets stand behind.
	const numbers = 3 * 4
	for _, m := range messages {
		info := nlmsg.Attribute(m[min(len(m), flagsSize):], xfrmSPDInfo)
		if len(info) >= numbers && bytes.Equal(info[:numbers], make([]byte, numbers)) {
			return true
		}
	}
	return false
}

// blockedByDefault tells whether what no policy allows is refused (`ip xfrm policy
// setdefault`), which applies without any policy.
func blockedByDefault() (bool, error) {
	messages, err := askXfrm(xfrmGetDefault)
	if errors.Is(err, unix.EINVAL) {
		return false, nil // a kernel without such defaults
	}
	if err != nil {
		return false, err
	}
	for _, m := range messages {
		// struct xfrm_userpolicy_default: incoming, forwarded, outgoing.
		if len(m) >= 3 && (m[1] == xfrmDefaultBlock || m[2] == xfrmDefaultBlock) {
			return true, nil
		}
	}
	return false, nil
}

// askXfrm asks a question that has no more to it than flags, which are none.
func askXfrm(kind int) ([][]byte, error) {
	request := nl.NewNetlinkRequest(kind, 0)
	request.AddRawData(binary.NativeEndian.AppendUint32(nil, 0))
	return request.Execute(unix.NETLINK_XFRM, 0)
}
