package agent

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// preview returns what a plan says that is made with the node's configuration, of which the
// agent that ran before knew nothing.
func (n *testNode) preview(t *testing.T) (string, error) {
	l := &life{killAt: -1, wake: make(chan struct{}, 1)}
	lines, err := n.agent(l, slog.New(slog.DiscardHandler)).Plan(t.Context())
	return strings.Join(lines, "\n"), err
}

func TestAPlanIsMadeWithTheSettingsOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, eni.Limits{ENIs: 4, V4: 50}, nil) // no IPv6
		n.stop()
		n.conf.Settings.Families = []eni.Family{eni.IPv6}
		n.conf.Settings.Routing, n.conf.Settings.SNAT, n.conf.Settings.MarkMask = ipam.Rule, false, 0xff00
		text, err := n.preview(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"change families from [ipv4] to [ipv6]", "change routing from map to rule", "change snat from true to false", "change markMask from 0x000000ff to 0x0000ff00",
			"at most 0", "the instance carries no ipv6 addresses for pods; see the key families"} {
			if !strings.Contains(text, want) {
				t.Errorf("the plan lacks %q:\n%s", want, text)
			}
		}
	})
}

func TestRangesThatDontHoldTheNodesENIsAreToldByPlanAndAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, n := one(t, large, nil)
		n.stop()
		n.conf.Settings.VPC = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		const want = "vpcCIDRs [10.1.0.0/16] does not hold 10.0.1."
		if text, err := n.preview(t); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set vpcCIDRs to the VPC's ranges") {
			t.Errorf("plan: %v\n%s", err, text)
		}
		n.start(-1, false)
		defer n.stop()
		sleep(2 * time.Second)
		if p := n.status().Problem; !strings.Contains(p, want) {
			t.Errorf("problem %q, want %q", p, want)
		}
	})
}
