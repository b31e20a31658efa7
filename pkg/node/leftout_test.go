package node

import (
	"errors"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// In a container without the right to enter pods' namespaces, as the agent's is, all else is compared.
func TestWhoMayNotEnterNamespacesComparesAllElse(t *testing.T) {
	n, dev := withPod(t)
	check := func(want string) {
		t.Helper()
		var lines []string
		var err error
		withoutRights(t, func() { lines, err = n.Check(t.Context()) })
		var left *LeftOutError
		if !errors.As(err, &left) || left.Pods != 1 || !strings.Contains(err.Error(), "CAP_SYS_ADMIN") || !strings.Contains(err.Error(), "on the node") {
			t.Errorf("what was left out: %v", err)
		}
		if got := strings.Join(lines, "\n"); got == "" != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("")
	nettest.Run(t, "ip", "neigh", "del", "10.0.0.21", "dev", dev)
	check("neigh 10.0.0.21 lladdr")
	if _, err := n.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("who may enter them: %q, %v", lines, err)
	}
}
