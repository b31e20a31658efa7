package manifests

import (
	"strings"
	"testing"
)

// Turning it off takes two steps: agents that are told dra: false serve the kubelet until the last claim is gone, for which they need what
// true brought along. Without the key that goes too.
func TestTheChartKeepsWhatDevicesTakeUntilTheyAreGone(t *testing.T) {
	const mount, class = "mountPath: /var/lib/kubelet/plugins_registry", "kind: DeviceClass"
	for _, tt := range []struct {
		value, version string
		want           bool
	}{{"true", newest, true}, {"false", newest, true}, {"null", newest, false}, {"false", "v1.30.0", false}} {
		text, err := render(t, "kube-system", tt.version, values(t, "sim.yaml", "agent.kubernetes.dra="+tt.value))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{mount, class, "name: enipool-agent-devices"} {
			if strings.Contains(text, part) != tt.want {
				t.Errorf("dra: %s on %s: %q is there: %t", tt.value, tt.version, part, !tt.want)
			}
		}
	}
}
