package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// batch is a list of requests to rtnetlink that are sent together, see conn.send.
// The kernel does them in order and one by one: they are no transaction.
type batch struct {
	where    string // stands behind the object in errors, as " in the pod"
	requests []*request
}

// request is one message of a batch and, once that is sent, what came of it.
type request struct {
	message  message
	get      bool   // is answered by data
	label    string // what it does, with %s for the object
	object   any
	where    string
	tolerate []unix.Errno // errors that send does not return

	answered bool
	err      error
	answer   []byte // of a get: the fixed part and the attributes
}

// add appends a request; label says what it does to what.
func (b *batch) add(m message, label string, object any) *request {
	r := &request{message: m.done(), label: label, object: object, where: b.where}
	b.requests = append(b.requests, r)
	return r
}

// tolerating has send not return these errors: the caller looks at err itself, or
// they are as good as success.
func (r *request) tolerating(errs ...unix.Errno) *request {
	r.tolerate = append(r.tolerate, errs...)
	return r
}

// failed tells whether the request failed with one of the errors.
func (r *request) failed(errs ...unix.Errno) bool {
	return slices.ContainsFunc(errs, func(e unix.Errno) bool { return errors.Is(r.err, e) })
}

// done tells whether the kernel did what was asked.
func (r *request) done() bool { return r.answered && r.err == nil }

// failure returns the request's error in words, or nil.
func (r *request) failure() error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf(r.label+"%s: %w", r.object, r.where, r.err)
}

// failure returns the error of the first request that failed and must not.
func (b *batch) failure() error {
	for _, r := range b.requests {
		if r.err != nil && !r.failed(r.tolerate...) {
			return r.failure()
		}
	}
	return nil
}

// unanswered returns the requests that are still to be sent.
func (b *batch) unanswered() []*request {
	return slices.DeleteFunc(slices.Clone(b.requests), func(r *request) bool { return r.answered })
}

// retry has the next send send what has failed.
func (b *batch) retry() {
	for _, r := range b.requests {
		r.answered = r.answered && r.err == nil
	}
}

// vethInfoPeer is the kernel's VETH_INFO_PEER.
const vethInfoPeer = 1

// addVeth makes a pair of links, both down, with the pod's end in the namespace
// that the file descriptor is.
func (b *batch) addVeth(p netconf.Pod, ns int) *request {
	m := newMessage(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, linkPart(0, 0, 0)...)
	end := func(name string, mac netconf.MAC) {
		m.text(unix.IFLA_IFNAME, name)
		m.number(unix.IFLA_MTU, uint32(p.MTU))
		m.attr(unix.IFLA_ADDRESS, mac[:])
		// One queue is what a veth uses unless told otherwise; the kernel would make
		// one for each possible CPU, at both ends, which costs time and memory per pod.
		m.number(unix.IFLA_NUM_TX_QUEUES, 1)
		m.number(unix.IFLA_NUM_RX_QUEUES, 1)
	}
	end(p.HostDev, p.HostMAC)
	m.nest(unix.IFLA_LINKINFO, nil, func() {
		m.text(unix.IFLA_INFO_KIND, "veth")
		m.nest(unix.IFLA_INFO_DATA, nil, func() {
			m.nest(vethInfoPeer, linkPart(0, 0, 0), func() {
				end(p.Dev, p.MAC)
				m.number(unix.IFLA_NET_NS_FD, uint32(ns))
			})
		})
	})
	return b.add(m, "create veth %s", p.HostDev)
}

// getLink asks for a link by its name.
func (b *batch) getLink(name string) *request {
	m := newMessage(unix.RTM_GETLINK, 0, linkPart(0, 0, 0)...)
	if len(name) < unix.IFNAMSIZ {
		m.text(unix.IFLA_IFNAME, name)
	} else {
		m.text(unix.IFLA_ALT_IFNAME, name)
	}
	m.number(unix.IFLA_EXT_MASK, skipStats)
	r := b.add(m, "look up %s", name)
	r.get = true
	return r
}

// setLink gives a link its alias and settings of its IPv4, which are numbers of the
// kernel's, see ipv4Setting.
func (b *batch) setLink(index int, dev, alias string, ipv4 map[uint16]uint32) *request {
	m := newMessage(unix.RTM_SETLINK, 0, linkPart(index, 0, 0)...)
	m.attr(unix.IFLA_IFALIAS, []byte(alias))
	if len(ipv4) > 0 {
		m.nest(unix.IFLA_AF_SPEC, nil, func() {
			m.nest(unix.AF_INET, nil, func() {
				m.nest(unix.IFLA_INET_CONF, nil, func() {
					for number, value := range ipv4 {
						m.number(number, value)
					}
				})
			})
		})
	}
	return b.add(m, "set alias of %s", dev)
}

func (b *batch) setGroup(index int, dev string, group uint32) *request {
	m := newMessage(unix.RTM_SETLINK, 0, linkPart(index, 0, 0)...)
	m.number(unix.IFLA_GROUP, group)
	return b.add(m, "set group of %s", dev)
}

func (b *batch) setUp(index int, dev string) *request {
	m := newMessage(unix.RTM_SETLINK, 0, linkPart(index, unix.IFF_UP, unix.IFF_UP)...)
	return b.add(m, "set %s up", dev)
}

func (b *batch) delLink(index int, dev string) *request {
	m := newMessage(unix.RTM_DELLINK, 0, linkPart(index, 0, 0)...)
	return b.add(m, "remove %s", dev)
}

func (b *batch) addAddr(a netconf.Addr, index int) *request {
	return b.add(addrMessage(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, a, index), "add address %s", a)
}

func (b *batch) delAddr(a netconf.Addr, index int) *request {
	return b.add(addrMessage(unix.RTM_DELADDR, 0, a, index), "remove address %s", a)
}

func addrMessage(kind, flags uint16, a netconf.Addr, index int) message {
	fixed := make([]byte, 4, unix.SizeofIfAddrmsg)
	fixed[0], fixed[1] = family8(a.Prefix.Addr()), byte(a.Prefix.Bits())
	if a.Prefix.Addr().Is6() {
		// Waiting for duplicate address detection costs seconds, and nobody else
		// can have an address that the cloud gave us.
		fixed[2] = unix.IFA_F_NODAD
	}
	fixed = binary.NativeEndian.AppendUint32(fixed, uint32(index))
	m := newMessage(kind, flags, fixed...)
	m.attr(unix.IFA_LOCAL, a.Prefix.Addr().AsSlice())
	m.attr(unix.IFA_ADDRESS, a.Prefix.Addr().AsSlice())
	if a.Prefix.Addr().Is4() && a.Prefix.Bits() < 31 { // see RFC 3021
		m.attr(unix.IFA_BROADCAST, broadcast(a.Prefix))
	}
	return m
}

func broadcast(p netip.Prefix) []byte {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return b
}

// setNeigh adds a permanent neighbour, or replaces the one that is there.
func (b *batch) setNeigh(n netconf.Neigh, index int) *request {
	fixed := make([]byte, 4, unix.SizeofNdMsg)
	fixed[0] = family8(n.Addr)
	fixed = binary.NativeEndian.AppendUint32(fixed, uint32(index))
	fixed = binary.NativeEndian.AppendUint16(fixed, unix.NUD_PERMANENT)
	m := newMessage(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, append(fixed, 0, 0)...)
	m.attr(unix.NDA_DST, n.Addr.AsSlice())
	m.attr(unix.NDA_LLADDR, n.MAC[:])
	return b.add(m, "set neighbour %s", n)
}

// addRoute adds a route where there is none to the same destination of the same
// metric, whatever link that leads to; else the error is EEXIST.
func (b *batch) addRoute(r netconf.Route, index int) *request {
	scope := byte(unix.RT_SCOPE_UNIVERSE)
	if !r.Gateway.IsValid() && r.Dst.Addr().Is4() {
		scope = unix.RT_SCOPE_LINK
	}
	fixed := []byte{family8(r.Dst.Addr()), byte(r.Dst.Bits()), 0, 0, 0, byte(r.Protocol()), scope, unix.RTN_UNICAST, 0, 0, 0, 0}
	m := newMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, fixed...)
	if r.Dst.Bits() > 0 {
		m.attr(unix.RTA_DST, r.Dst.Addr().AsSlice())
	}
	if r.Gateway.IsValid() {
		m.attr(unix.RTA_GATEWAY, r.Gateway.AsSlice())
	}
	m.number(unix.RTA_OIF, uint32(index))
	m.number(unix.RTA_TABLE, uint32(r.Table))
	if r.Metric != 0 {
		m.number(unix.RTA_PRIORITY, uint32(r.Metric))
	}
	return b.add(m, "add route %s", r)
}

// getRoute asks which way a packet to the address would go; with RTM_F_FIB_MATCH, by
// which route.
func (b *batch) getRoute(to netip.Addr, flags uint32) *request {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[1] = family8(to), byte(to.BitLen())
	binary.NativeEndian.PutUint32(fixed[8:], flags)
	m := newMessage(unix.RTM_GETROUTE, 0, fixed...)
	m.attr(unix.RTA_DST, to.AsSlice())
	r := b.add(m, "ask for the route to %s", to)
	r.get = true
	return r
}

// addRule adds a rule from a source, to a destination or all.
func (b *batch) addRule(r netconf.Rule) *request {
	m := ruleMessage(unix.RTM_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, r)
	m.number(unix.FRA_TABLE, uint32(r.Table))
	return b.add(m, "add rule %s", r)
}

// delRuleFrom removes one rule of ours at the priority from the source, whatever it
// leads to; ENOENT if there is none.
func (b *batch) delRuleFrom(r netconf.Rule) *request {
	m := ruleMessage(unix.RTM_DELRULE, 0, netconf.Rule{Priority: r.Priority, IPv6: r.IPv6, From: r.From})
	return b.add(m, "remove rules of priority "+strconv.Itoa(r.Priority)+" from %s", r.From)
}

// ruleMessage has the parts of a rule that say which packets it is for.
func ruleMessage(kind, flags uint16, r netconf.Rule) message {
	const toTable = 1 // FR_ACT_TO_TBL
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0] = unix.AF_INET
	if r.IPv6 {
		fixed[0] = unix.AF_INET6
	}
	if kind == unix.RTM_NEWRULE {
		fixed[7] = toTable
	}
	if r.From.IsValid() {
		fixed[2] = byte(r.From.Bits())
	}
	if r.To.IsValid() {
		fixed[1] = byte(r.To.Bits())
	}
	m := newMessage(kind, flags, fixed...)
	if r.From.IsValid() {
		m.attr(unix.FRA_SRC, r.From.Addr().AsSlice())
	}
	if r.To.IsValid() {
		m.attr(unix.FRA_DST, r.To.Addr().AsSlice())
	}
	m.number(unix.FRA_PRIORITY, uint32(r.Priority))
	m.attr(unix.FRA_PROTOCOL, []byte{byte(r.Protocol())})
	return m
}

func family8(a netip.Addr) byte {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
