package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/install"
)

func TestWhatLivesOnTheNodeIsTold(t *testing.T) {
	files := []string{"/etc/cni/net.d/10-aws.conflist"}
	lines := tellNeighbours([]string{"lo", "eth0", "eni3f9a01b2c4d", "cali1", "cali2", "cali3", "cali4", "flannel.1", "wg0", "kube-ipvs0"}, func(f string) bool { return slices.Contains(files, f) })
	want := []string{"warning   aws-vpc-cni (/etc/cni/net.d/10-aws.conflist): ", "warning   Calico (cali1, cali2, cali3): ", "must fix  flannel (flannel.1): ", "ok        kube-proxy in mode ipvs (kube-ipvs0): ", "warning   WireGuard (wg0): "}
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %v", len(lines), lines)
	}
	for i, l := range lines {
		if !strings.HasPrefix(l.String(), want[i]) {
			t.Errorf("%s\nwant %s", l, want[i])
		}
	}
	none := tellNeighbours([]string{"lo", "eth0", "eni3f9a01b2c4d"}, func(string) bool { return false })
	if len(none) != 1 || none[0].What != install.OK {
		t.Errorf("of a node of enipool alone: %v", none)
	}
}

// A row that nothing on a node could match is never told.
func TestEachNeighbourIsKnownBySomething(t *testing.T) {
	for _, n := range neighbours {
		if len(n.links)+len(n.files) == 0 || n.text == "" {
			t.Errorf("%+v", n)
		}
	}
}
