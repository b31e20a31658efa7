package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Who flushes the rules takes the kernel's to the main table away too, without which pods
// have no way out of the VPC: enipool's own rules, put back, don't help.
func TestPodsWithoutAWayForWantOfTheMainRuleAreTold(t *testing.T) {
	v := newMarked(t, ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}, CoolDown: time.Second})
	v.everyWay()
	v.node.Run(t, "ip", "rule", "flush")
	v.reload()
	for _, id := range []string{"a", "b"} {
		if _, err := v.pods[id].Try("ping", "-c", "1", "-W", "1", internet4); err == nil {
			t.Errorf("pod %s has a way", id)
		}
	}
	lines := v.checkNode()
	if len(lines) != 1 || !strings.Contains(lines[0], "the kernel has no way for packets of pods of the ENI eth0 and pods of the ENI eth1: its rule priority 32766 from all lookup main is missing") {
		t.Fatalf("check says %q", lines)
	}
	_, command, _ := strings.Cut(lines[0], "; put it back: ")
	v.node.Run(t, "sh", "-c", command)
	v.everyWay()
	if lines := v.checkNode(); len(lines) > 0 {
		t.Errorf("after %s: %q", command, lines)
	}
}
