package host

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// flow is what of a connection tells whether it is stale.
type flow struct {
	to        netip.Addr
	transport netconf.Transport
	port      uint16
}

// Attributes of a connection's entry, see linux/netfilter/nfnetlink_conntrack.h.
const (
	ctaOriginal  = 1
	ctaAddresses = 1
	ctaProtocol  = 2
	ctaToIPv4    = 2
	ctaToIPv6    = 4
	ctaTransport = 1
	ctaToPort    = 3
)

// decodeFlow reads where the first packet of a connection went.
func decodeFlow(entry []byte) (f flow) {
	original := nlmsg.Attribute(entry, ctaOriginal)
	addresses, protocol := nlmsg.Attribute(original, ctaAddresses), nlmsg.Attribute(original, ctaProtocol)
	to := nlmsg.Attribute(addresses, ctaToIPv4)
	if to == nil {
		to = nlmsg.Attribute(addresses, ctaToIPv6)
	}
	f.to, _ = netip.AddrFromSlice(to)
	if number := nlmsg.Attribute(protocol, ctaTransport); len(number) == 1 {
		f.transport = netconf.Transport(number[0])
	}
	if port := nlmsg.Attribute(protocol, ctaToPort); len(port) == 2 {
		f.port = uint16(port[0])<<8 | uint16(port[1])
	}
	return f
}

// cameForPort tells whether the flow came to the node for one of the ports. Before the port led
// to a pod, its packets went elsewhere or nowhere, and the kernel goes on with that as long as
// packets come.
func cameForPort(ports netconf.PortSet, local []netip.Addr, f flow) bool {
	if f.transport != netconf.UDP || !slices.Contains(local, f.to) && !f.to.IsLoopback() {
		return false
	}
	return ports.Leads(f.to, f.transport, f.port)
}

// ForgetFlows makes the kernel forget the UDP flows to the ports. It is called after the ports
// were opened or closed: the next packet of each is a first one again, which the packet filter
// translates.
func (h *Host) ForgetFlows(ports []netconf.PodPorts) error {
	udp := func(p netconf.HostPort) bool { return p.Transport == netconf.UDP }
	if !slices.ContainsFunc(ports, func(p netconf.PodPorts) bool { return slices.ContainsFunc(p.Ports, udp) }) {
		return nil
	}
	local, err := h.Addrs()
	if err != nil {
		return err
	}
	set := netconf.NewPortSet(ports...)
	var errs []error
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		if slices.ContainsFunc(ports, func(p netconf.PodPorts) bool { return p.Pod.Is4() == (family == unix.AF_INET) }) {
			errs = append(errs, deleteFlows(family, func(f flow) bool { return cameForPort(set, local, f) }))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("forget UDP flows: %w", err)
	}
	return nil
}

// deleteFlows makes the kernel forget the connections that pick picks.
func deleteFlows(family byte, pick func(flow) bool) error {
	request := func(kind, flags int) *nl.NetlinkRequest {
		r := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|kind, flags)
		r.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
		return r
	}
	// After an error what was listed until then is deleted all the same.
	list, err := dump(func() ([][]byte, error) {
		return request(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP).Execute(unix.NETLINK_NETFILTER, 0)
	})
	errs := []error{err}
	for _, message := range list {
		if len(message) < nl.SizeofNfgenmsg || !pick(decodeFlow(message[nl.SizeofNfgenmsg:])) {
			continue
		}
		r := request(nl.IPCTNL_MSG_CT_DELETE, unix.NLM_F_ACK)
		r.AddRawData(message[nl.SizeofNfgenmsg:])
		_, err := r.Execute(unix.NETLINK_NETFILTER, 0)
		errs = append(errs, gone(err))
	}
	return errors.Join(errs...)
}
