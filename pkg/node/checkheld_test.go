package node

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
)

// TestTheServiceThatPutsPodsAddressesOnTheNodeIsNamed: who only removes the address
// finds it there again after the service's next look.
func TestTheServiceThatPutsPodsAddressesOnTheNodeIsNamed(t *testing.T) {
	a := eni.Address{Addr: netip.MustParseAddr("10.0.0.4"), State: eni.Held}
	cause := "address 10.0.0.4/24 dev eth1"
	for name, file := range map[string]string{
		"amazon-ec2-net-utils": "usr/lib/systemd/system/policy-routes@.service",
		"cloud-init":           "etc/systemd/network/10-cloud-init-eth1.network",
		"nm-cloud-setup":       "etc/systemd/system/timers.target.wants/nm-cloud-setup.timer",
		"waagent":              "usr/sbin/waagent",
		"google-guest-agent":   "usr/lib/systemd/system/google-guest-agent.service",
	} {
		root, other := t.TempDir(), t.TempDir()
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/nowhere/as/in/a/container", path); err != nil {
			t.Fatal(err)
		}
		line := Node{}.heldLine(a, cause, host.NICServices(other, root))
		if !strings.HasPrefix(line, "must fix: 10.0.0.4 is held by others: address 10.0.0.4/24 dev eth1; ") ||
			!strings.Contains(line, "; "+name+" is here: ") || strings.Count(line, " is here: ") != 1 || !strings.HasSuffix(line, "; then `ip address del 10.0.0.4/24 dev eth1`") {
			t.Errorf("%s: %s", name, line)
		}
	}
	if got := host.NICServices(t.TempDir()); len(got) > 0 {
		t.Errorf("found on an empty disk: %v", got)
	}
}
