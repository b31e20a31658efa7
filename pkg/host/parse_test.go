package host

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// ruleOf is a rule of IPv6 with the attributes that fill appends.
func ruleOf(fill func(m *message)) []byte {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[7] = unix.AF_INET6, byte(netconf.ActionTable)
	m := message(fixed)
	fill(&m)
	return m
}

// The kernel's numbers of one byte are read only where there is one.
func TestARuleWithEmptyAttributesIsRead(t *testing.T) {
	for _, kind := range []uint16{unix.FRA_PROTOCOL, unix.FRA_L3MDEV, unix.FRA_IP_PROTO, unix.FRA_SPORT_RANGE, unix.FRA_PRIORITY, unix.FRA_SRC, unix.FRA_IIFNAME} {
		r := parseRule(ruleOf(func(m *message) { m.attr(kind, nil) }))
		if r.Protocol != 0 || r.Transport != 0 || r.Priority != 0 {
			t.Errorf("attribute %d: %+v", kind, r)
		}
	}
}

// A prefix of addresses that are IPv4's in the form of IPv6 is none of all addresses.
func TestARuleKeepsAPrefixOfMappedAddresses(t *testing.T) {
	mapped := netip.MustParsePrefix("::ffff:10.0.0.0/104")
	m := ruleOf(func(m *message) {
		m.attr(unix.FRA_SRC, mapped.Addr().AsSlice())
		m.attr(unix.FRA_DST, mapped.Addr().AsSlice())
	})
	m[1], m[2] = 104, 104
	if r := parseRule(m); r.From != mapped || r.To != mapped {
		t.Errorf("from %s to %s, want %s", r.From, r.To, mapped)
	}
}

func TestAnAddressWithoutItsHeaderIsNone(t *testing.T) {
	if addrs := peerAddrs([][]byte{{unix.AF_INET}, nil}); len(addrs) > 0 {
		t.Errorf("got %v", addrs)
	}
	far := make(message, unix.SizeofIfAddrmsg)
	far[0], far[1] = unix.AF_INET, 32
	binary.NativeEndian.PutUint32(far[4:], 7)
	far.attr(unix.IFA_ADDRESS, []byte{10, 0, 0, 2})
	far.attr(unix.IFA_LOCAL, []byte{10, 0, 0, 1})
	if addrs := peerAddrs([][]byte{far}); len(addrs) != 1 || addrs[0] != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("got %v, want the near end's 10.0.0.1", addrs)
	}
}
