package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// BenchmarkApplyNothingToDo is what comparing the kernel with the cache costs on a
// node of 250 pods where all is as it should be.
func BenchmarkApplyNothingToDo(b *testing.B) {
	n, state := newNode(b, 2)
	state.ENIs[1].V4.Primary = netip.MustParsePrefix("10.0.0.20/20")
	var batch strings.Builder
	for i := range 250 {
		a := eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)}), ENI: 1, State: eni.Used,
			Owner: &eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprint(i), IfName: "eth0"}}}
		state.Addresses = append(state.Addresses, a)
		p := netconf.NewPod(state.Settings, ipam.Lease{Interface: state.ENIs[1], Addresses: []eni.Address{a}}, 0)
		fmt.Fprintf(&batch, "link add %s address %s type veth peer name peer%d address %s\n", p.HostDev, p.HostMAC, i, p.MAC)
	}
	nettest.Run(b, "sh", "-c", "ip -batch - <<'E'\n"+batch.String()+"E\n")
	b.Cleanup(func() {
		nettest.Run(b, "sh", "-c", "for dev in $(ip -br link | sed -n 's/^\\(peer[0-9]*\\).*/\\1/p'); do ip link del $dev; done")
	})
	n.put(b, state)
	for range 2 {
		if _, err := n.Apply(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if lines, err := n.Apply(b.Context()); err != nil || len(lines) > 0 {
			b.Fatal(lines, err)
		}
	}
}
