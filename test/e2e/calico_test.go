package e2e

import (
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

// checkLater is what `pool check` says of the node so much later.
func (v *vpc) checkLater(after time.Duration) (lines []string) {
	v.t.Helper()
	v.must(v.node.Do(func() (err error) {
		later := func() time.Duration { return nodecache.SinceBoot() + after }
		lines, err = nodepkg.Node{Cache: v.n.Cache, Now: later}.Check(v.t.Context())
		return err
	}))
	return lines
}

// Felix's chains drop what comes by a link that they don't name, and name each pod's.
func TestPodsThatCalicoLetsPassAreNotToldToBeCutOff(t *testing.T) {
	v := newMarked(t, ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}, CoolDown: time.Second})
	links := []string{v.linkTo("10.0.0.11"), v.linkTo("10.0.0.21")}
	for felix, script := range map[string]string{
		"iptables":                         nettest.FelixIptables(links...),
		"iptables, beside Docker's policy": nettest.FelixIptables(links...) + "\niptables-nft -P FORWARD DROP",
		"nft":                              nettest.FelixNft(links...),
	} {
		v.node.Run(t, "sh", "-ec", script)
		v.everyWay()
		for _, after := range []time.Duration{0, time.Hour} {
			if lines := v.checkLater(after); len(lines) > 0 {
				t.Errorf("Felix by %s, pods older by %s: %q", felix, after, lines)
			}
		}
		v.node.Run(t, "sh", "-ec", "nft delete table ip calico 2>/dev/null || true; nft delete table ip filter 2>/dev/null || true")
	}
}
