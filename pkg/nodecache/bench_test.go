package nodecache

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// BenchmarkPickAndCommit is what an ADD does with the cache: lock, read, choose,
// write one line, unlock; all addresses but one are used. It takes the
// address back by a second update of the same cost; µs/pick is one of the two.
func BenchmarkPickAndCommit(b *testing.B) {
	for _, n := range []int{2, 320, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, ctx := Cache{Path: filepath.Join(b.TempDir(), "node.cache")}, context.Background()
			if err := c.Replace(ctx, func(*ipam.State, error) (*ipam.State, error) { return fullCache(n), nil }); err != nil {
				b.Fatal(err)
			}
			owner := eni.Owner{Key: eni.Key{Network: "pods", Container: "last", IfName: "eth0"}, Netns: "/run/netns/last"}
			var lease ipam.Lease
			for b.Loop() {
				// The two updates cost the same: read all, write one line.
				err := c.For(owner.Key).Update(ctx, func(s *ipam.State) (err error) {
					lease, err = s.AssignPod(owner, "", SinceBoot())
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
				err = c.For(owner.Key).Update(ctx, func(s *ipam.State) error { s.UndoLease(lease); return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/pick")
		})
	}
}

// fullCache returns a node state of n addresses on one ENI, all used but the last.
func fullCache(n int) *ipam.State {
	s := &ipam.State{
		Settings: ipam.Settings{MarkMask: ipam.DefaultMarkMask, CoolDown: 30 * time.Second, Families: []eni.Family{eni.IPv4}},
		ENIs: []eni.Interface{{ID: "eni-a", Device: "eth0", MTU: 1500, V4: eni.Net{
			Primary: netip.MustParsePrefix("10.0.0.2/16"), Gateway: netip.MustParseAddr("10.0.0.1")}}},
	}
	addr := netip.MustParseAddr("10.0.1.0")
	for i := range n {
		a := eni.Address{Addr: addr, Since: 100 * time.Second}
		if i < n-1 {
			a.State = eni.Used
			a.Owner = &eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%064x", i), IfName: "eth0"},
				Netns: fmt.Sprintf("/var/run/netns/cni-%036d", i), NetnsInode: 4026532000, Namespace: "default",
				Pod: fmt.Sprintf("web-%d", i), UID: fmt.Sprintf("%036d", i)}
		}
		s.Addresses = append(s.Addresses, a)
		addr = addr.Next()
	}
	return s
}
