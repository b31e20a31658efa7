package node

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestCheckNamesTheChainThatCutsPodsOff(t *testing.T) {
	n, initial := newNode(t, 2)
	n.put(t, initial)
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

// A mark that is set as a whole takes away the bits by which a packet leaves by its ENI.
func TestCheckNamesTheChainThatTakesMarksAway(t *testing.T) {
	n, initial := newNode(t, 2)
	n.put(t, initial)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	const told = "pods are cut off: nftables table ip x: chain p changes the mark of what pods send, by which enipool chooses their ENI; have it leave the bits 0x000000ff alone"
	for _, tt := range []struct {
		name, hook, rules string
		told              bool
	}{
		{"the whole mark", "prerouting priority 0", `add rule ip x p iifname "eni*" meta mark set 0x1000`, true},
		{"by a chain", "prerouting priority 0", `add chain ip x q; add rule ip x q meta mark set 0x1000; add rule ip x p ip saddr 10.0.0.0/24 jump q`, true},
		{"to the same", "prerouting priority 0", `add rule ip x p ip saddr 10.0.0.21 meta mark set 0x1001`, false},
		{"to that of another ENI", "prerouting priority 0", `add rule ip x p iifname "eni*" meta mark set 0x1002`, true},
		{"to one that is put right again", "prerouting priority 0", `add rule ip x p iifname "eni*" ct mark set meta mark; add rule ip x p meta mark set 0x1000; add rule ip x p meta mark set ct mark`, false},
		{"other bits", "prerouting priority 0", `add rule ip x p meta mark set meta mark and 0xffff00ff or 0x1000`, false},
		{"what is restored", "prerouting priority 0", `add rule ip x p meta mark set ct mark`, false},
		{"other links", "prerouting priority 0", `add rule ip x p iifname "docker0" meta mark set 0x1000`, false},
		{"some packets", "prerouting priority 0", `add rule ip x p ip dscp 8 meta mark set 0x1000`, false},
		{"what comes that far", "prerouting priority 0", `add rule ip x p ip dscp 8 accept; add rule ip x p meta mark set 0x1000`, false},
		{"some packets, by a chain", "prerouting priority 0", `add chain ip x q; add rule ip x q meta mark set 0x1000; add rule ip x p ip dscp 8 jump q`, false},
		{"before ours", "prerouting priority -150", `add rule ip x p meta mark set 0x1000`, false},
		{"behind routing", "forward priority 0", `add rule ip x p meta mark set 0x1000`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nettest.Run(t, "nft", "add table ip x; add chain ip x p { type filter hook "+tt.hook+"; }; "+tt.rules)
			defer nettest.Run(t, "nft", "delete", "table", "ip", "x")
			lines, err := n.Check(t.Context())
			if err != nil || tt.told != (len(lines) == 1 && lines[0] == told) || !tt.told && len(lines) > 0 {
				t.Errorf("check says %q, %v", lines, err)
			}
		})
	}
}
