package node

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// Felix takes some seconds to know a new pod's link, and drops what comes by it until then. The
// same, long after, is worth a line: but never one that switches network policies off.
func TestCheckOfPodsThatCalicoKnowsOrNot(t *testing.T) {
	n, dev := withPod(t)
	since := func(at time.Duration) {
		var state *ipam.State
		if err := n.Cache.View(t.Context(), func(s *ipam.State) error { state = s; return nil }); err != nil {
			t.Fatal(err)
		}
		state.Addresses[1].Since = at
		n.put(t, state)
	}
	for felix, rules := range map[string]func(...string) string{"iptables": nettest.FelixIptables, "nft": nettest.FelixNft} {
		for _, tt := range []struct {
			name  string
			since time.Duration
			links []string
			told  bool
		}{
			{"a pod that it knows", time.Minute, []string{dev}, false},
			{"a new pod that it does not know yet", n.Now() - time.Second, nil, false},
			{"a new pod beside others", n.Now() - time.Second, []string{"eniother"}, false},
			{"a pod that it does not know for long", time.Minute, []string{"eniother"}, true},
		} {
			since(tt.since)
			nettest.Run(t, "sh", "-ec", rules(tt.links...))
			lines, err := n.Blocked(t.Context())
			said := strings.Join(lines, "\n")
			if err != nil || tt.told != strings.Contains(said, "Felix does not know the pods' links") || !tt.told && said != "" || strings.Contains(strings.ToLower(said), " accept") && !strings.Contains(said, "don't accept pods before its chains") {
				t.Errorf("Felix by %s, %s: %q, %v", felix, tt.name, said, err)
			}
			nettest.Run(t, "sh", "-ec", "nft delete table ip calico 2>/dev/null || true; nft delete table ip filter 2>/dev/null || true")
		}
	}
}
