package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// CHECK compares with a record that was made anew of what the kernel has, which does not
// know the runtime's words.
func TestAHealthyPodPassesCHECKByARebuiltRecord(t *testing.T) {
	limit := func(rate, burst int) map[string]any {
		return map[string]any{"bandwidth": map[string]any{"ingressRate": rate, "ingressBurst": burst, "egressRate": rate, "egressBurst": burst}}
	}
	ports := func(list ...port) map[string]any { return map[string]any{"portMappings": list} }
	for name, s := range map[string]ipam.Settings{"nftables": {}, "iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables}} {
		t.Run(name, func(t *testing.T) {
			s.Families = []eni.Family{eni.IPv4}
			v := newVPC(t, s)
			for what, capabilities := range map[string]map[string]any{
				"the order of ports":      ports(tcp(8081, 80), tcp(8080, 80)),
				"all addresses":           ports(tcp(8081, 80).on("0.0.0.0"), udp(8081, 80)),
				"one address":             ports(tcp(8081, 80).on("10.0.0.10"), tcp(8082, 80)),
				"rates that are odd":      limit(12345671, 8000003),
				"the burst of Kubernetes": limit(1000000, 2147483647),
			} {
				a := v.replacePod(v.builtIn(), "a", capabilities)
				v.must(a.check())
				v.must(os.WriteFile(v.record(), []byte("x\n"), 0o600))
				v.reload()
				if err := a.check(); err != nil {
					text, _ := os.ReadFile(v.record())
					t.Errorf("%s: %v\n%s", what, err, text)
				}
				v.must(a.del())
			}
		})
	}
}

// A pod ends on a full disk too, whatever became of its record.
func TestDELOfAPodWithADamagedRecordNeedsNoRoomOnTheDisk(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	v.must(os.WriteFile(v.record(), []byte("x\n"), 0o600))
	folder := filepath.Dir(v.record())
	// The disk is of this DEL alone.
	full := `d=$1; shift; k=$(mktemp -d); cp -a $d/. $k; mount -t tmpfs -o size=16k none $d; cp -a $k/. $d; rm -r $k
		cat /dev/zero >$d/zero 2>/dev/null; if (echo more >$d/more) 2>/dev/null; then echo not full >&2; exit 1; fi
		"$@" || exit; ls $d | grep -q ^eni && echo the record is left >&2; rm -f $d/zero $d/more`
	end := v.n.cmd(call{command: "DEL", id: "a", netns: v.pods["a"].Path, conf: v.n.conf("1.0.0"), wrap: []string{"unshare", "-m", "sh", "-c", full, "sh", folder}})
	var said []byte
	err := v.node.Do(func() (err error) { said, err = end.CombinedOutput(); return err })
	if err != nil || strings.Contains(string(said), "not full") || strings.Contains(string(said), "is left") {
		t.Fatalf("DEL: %v\n%s", err, said)
	}
	if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != "refused" {
		t.Errorf("the closed port: %s", seen)
	}
}

// The bandwidth plugin behind enipool limits a pod on the very link that enipool made, and so
// may a person.
func TestLimitsOfOthersAreTakenForNoLostRecord(t *testing.T) {
	v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
	nothing := func(what string) {
		t.Helper()
		if lines := v.checkNode(); len(lines) > 0 {
			t.Errorf("%s: pool check of a good node: %q", what, lines)
		}
		v.reload()
		if r := v.records(); len(r) > 0 {
			t.Errorf("%s: records %q", what, r)
		}
	}
	v.replacePod(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	v.plugin("DEL", "b") // the folder of records stays
	a := v.replacePod(v.chained(), "a", map[string]any{"bandwidth": map[string]any{"ingressRate": 80000000, "ingressBurst": 8000000}})
	nothing("the bandwidth plugin's")
	v.must(a.check())
	v.must(a.del())

	v.must(v.newAttachment(v.builtIn(), "a", nil).add())
	dev := v.links("eni")[0]
	v.node.Run(t, "tc", "qdisc", "add", "dev", dev, "root", "tbf", "rate", "10mbit", "burst", "32kb", "latency", "25ms")
	nothing("a person's")
	v.node.Run(t, "tc", "qdisc", "del", "dev", dev, "root")
	nothing("none any more")
	if queue := v.node.Run(t, "tc", "qdisc", "show", "dev", dev); strings.Contains(queue, "tbf") {
		t.Errorf("what its owner removed came back: %s", queue)
	}
}
