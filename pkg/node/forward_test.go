package node

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestCheckNamesTheChainThatCutsPodsOff(t *testing.T) {
	n, book := newNode(t, 2)
	n.put(t, book)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Fatalf("all is well: %q, %v", lines, err)
	}
	nettest.Run(t, "nft", "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; };"+
		"add rule ip filter FORWARD ct state established,related accept; add rule ip filter FORWARD iifname docker0 accept")
	lines, err := n.Check(t.Context())
	if want := "pods are cut off: nftables table ip filter: chain FORWARD drops what pods send and what pods get by its policy; to let it pass: iptables -I FORWARD -i eni+"; err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], want) {
		t.Errorf("check says %q, %v; want %q", lines, err, want)
	}
	nettest.Run(t, "nft", `insert rule ip filter FORWARD iifname "eni*" accept; insert rule ip filter FORWARD oifname "eni*" accept`)
	if lines, err := n.Check(t.Context()); err != nil || len(lines) > 0 {
		t.Errorf("after its command: %q, %v", lines, err)
	}
}
