package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// unreadable are ways in which a pod's record can't be read, or is not there.
var unreadable = map[string]func(record string) error{
	"damaged":            func(record string) error { return os.WriteFile(record, []byte("x\n"), 0o600) },
	"lost":               os.Remove,
	"of a later release": writeLater(" 1 min 1\n", " 2 min 2\n"),
}

// writeLater makes the record one of a later release with the head.
func writeLater(head, later string) func(record string) error {
	return func(record string) error {
		text, err := os.ReadFile(record)
		to := strings.NewReplacer(head, later, "\nend\n", "\nhairpin off\nend\n").Replace(string(text))
		return errors.Join(err, os.WriteFile(record, []byte(to), 0o600))
	}
}

// record is the file of the only record that there is.
func (v *vpc) record() string {
	v.t.Helper()
	list := v.records()
	if len(list) != 1 {
		v.t.Fatalf("records %q, want one", list)
	}
	return filepath.Join(v.n.Cache.Path+".pods", list[0])
}

// What the kernel holds for a living pod is the pod's, whatever became of its record: nobody
// else's ADD, DEL or repair takes it.
func TestAHostPortStaysWithALivingPodWhoseRecordCannotBeRead(t *testing.T) {
	for name, s := range map[string]ipam.Settings{"nftables": {}, "iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables}} {
		for why, spoil := range unreadable {
			t.Run(name+", "+why, func(t *testing.T) {
				s.Families = []eni.Family{eni.IPv4}
				v := newVPC(t, s)
				a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
				v.plugin("DEL", "b")
				answerAll(t, v.pods["a"], "80")
				stays := func(when string) {
					t.Helper()
					if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != internet4 {
						t.Errorf("%s: %s", when, seen)
					}
				}
				v.must(spoil(v.record()))
				if err := takenFrom(v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(8080, 80)}}).add(), "a"); err != nil {
					t.Error(err)
				}
				stays("after an ADD for the same port")
				other := v.newAttachment(v.builtIn(), "b", map[string]any{"portMappings": []port{tcp(9090, 80)}})
				v.must(other.add())
				stays("after an ADD for another port")
				v.must(other.del())
				stays("after the DEL of another pod")
				v.reload()
				stays("after a repair")
				v.must(a.del())
				if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != "refused" {
					t.Errorf("after DEL: %s", seen)
				}
				if left := v.records(); len(left) > 0 {
					t.Errorf("records %q are left", left)
				}
			})
		}
	}
}

// A record says by its head who can do without what is new in it. It stays as it is.
func TestRepairKeepsTheRecordOfALaterRelease(t *testing.T) {
	for _, later := range []string{" 2 min 1\n", " 2 min 2\n"} {
		t.Run(strings.TrimSpace(later), func(t *testing.T) {
			v := newVPC(t, ipam.Settings{Families: []eni.Family{eni.IPv4}})
			v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
			answerAll(t, v.pods["a"], "80")
			v.must(writeLater(" 1 min 1\n", later)(v.record()))
			was, err := os.ReadFile(v.record())
			v.must(err)
			v.reload()
			if is, err := os.ReadFile(v.record()); err != nil || string(is) != string(was) {
				t.Errorf("the record was\n%s\nis\n%s (%v)", was, is, err)
			}
			if seen := query(v.internet, "tcp", "10.0.0.10:8080"); seen != internet4 {
				t.Errorf("after the repair: %s", seen)
			}
		})
	}
}

// Whoever can't remove a pod's rules keeps its record and says so: the next DEL, or the
// agent, removes them before the address is another pod's.
func TestDELFailsWhileIptablesCannotBeRun(t *testing.T) {
	v := newVPC(t, ipam.Settings{Routing: ipam.Rule, Firewall: ipam.Iptables, Families: []eni.Family{eni.IPv4}})
	a := v.replacePod(v.builtIn(), "a", map[string]any{"portMappings": []port{tcp(8080, 80)}})
	tool := strings.TrimSpace(v.node.Run(t, "sh", "-c", "readlink -f $(which iptables)"))
	cmd := v.n.cmd(call{command: "DEL", id: "a", netns: v.pods["a"].Path, conf: v.n.conf("1.0.0"),
		wrap: []string{"unshare", "-m", "sh", "-c", "mount --bind /dev/null " + tool + `; exec "$0"`}})
	var out []byte
	err := v.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err == nil || !strings.Contains(string(out), "close host ports: ") {
		t.Errorf("DEL without iptables: %v\n%s", err, out)
	}
	v.record() // is there
	v.must(a.del())
	if rules := v.node.Run(t, "iptables", "-t", "nat", "-S", "ENIPODS-ports"); strings.Contains(rules, "8080") {
		t.Errorf("rules are left:\n%s", rules)
	}
	// Rules that are gone are no reason to fail.
	v.must(a.add())
	v.node.Run(t, "nft", "flush", "ruleset")
	v.must(a.del())
}
