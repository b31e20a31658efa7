package e2e

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	nodepkg "github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
)

func mapped() ipam.Settings {
	return ipam.Settings{Routing: ipam.Map, Firewall: ipam.Nftables, Families: []eni.Family{eni.IPv4}}
}

// uninstall takes enipool out of the node's kernel.
func (v *vpc) uninstall() (removed []string, err error) {
	v.t.Helper()
	v.must(v.node.Do(func() error {
		removed, _, err = nodepkg.Node{Cache: v.n.Cache, Now: nodecache.SinceBoot}.Remove(v.t.Context(), "/none")
		return nil
	}))
	return removed, err
}

// A pod of ptp that has an address of enipool is known to the node cache alone.
func TestUninstallDoesNotCutOffPodsOfOtherPluginsThatTheNodeCacheHasLost(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string){
		"line":    func(t *testing.T, path string) { overwrite(t, path, "pods b eth0", "pods x eth0") },
		"head":    func(t *testing.T, path string) { overwrite(t, path, "enipool-node-cache", "xx") },
		"missing": func(_ *testing.T, path string) { _ = os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, mapped())
			v.plugin("DEL", "b")
			b := v.newAttachment(`{"cniVersion":"1.0.0","name":"pods","plugins":[{"cniVersion":"1.0.0","name":"pods","type":"ptp",`+
				`"ipam":{"type":"enipool","cachePath":"`+v.n.Cache.Path+`","waitForAddress":"0s"}}]}`, "b", nil)
			v.must(b.add())
			v.plugin("DEL", "a")
			answerAll(t, v.pods["b"], "80")
			addr := strings.Fields(v.pods["b"].Run(t, "ip", "-4", "-br", "addr", "show", "eth0"))[2]
			addr, _, _ = strings.Cut(addr, "/")
			saved, err := os.ReadFile(v.n.Cache.Path)
			v.must(err)
			before := query(v.internet, "tcp", addr+":80")
			if !strings.HasPrefix(before, "2") && !strings.HasPrefix(before, "1") {
				t.Fatalf("the pod does not answer: %q", before)
			}
			damage(t, v.n.Cache.Path)
			removed, err := v.uninstall()
			var unknown *nodepkg.UnknownError
			if !errors.As(err, &unknown) || len(removed) > 0 {
				t.Errorf("removed %q, %v", removed, err)
			}
			if after := queryWithin(5*time.Second, v.internet, "tcp", addr+":80"); after != before {
				t.Errorf("the pod answers %q, before %q", after, before)
			}
			v.must(os.WriteFile(v.n.Cache.Path, saved, 0o600)) // for the pod's DEL
		})
	}
}

// An ADD that waits counts as a pod: without that it would get an address on a node that
// routes no pod's packet any more, and report success.
func TestUninstallWaitsForADDsThatWait(t *testing.T) {
	s := mapped()
	s.CoolDown = 4 * time.Second
	v := newVPC(t, s)
	v.plugin("DEL", "a")
	v.plugin("DEL", "b")
	v.pods["c"] = nettest.NewNetns(t, "pod-c")
	conf := strings.Replace(v.n.conf("1.0.0"), `"waitForAddress":"0s"`, `"waitForAddress":"30s"`, 1)
	cmd := v.n.cmd(call{command: "ADD", id: "c", netns: v.pods["c"].Path, conf: conf})
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	v.must(v.node.Do(cmd.Start))
	if !v.n.waitsOr("c", nil) {
		t.Fatalf("the ADD does not wait: %s", out.String())
	}
	var living *nodepkg.LivingError
	if removed, err := v.uninstall(); !errors.As(err, &living) || len(removed) > 0 {
		t.Errorf("while the ADD waits or has just got an address: removed %q, %v", removed, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if out, err := v.pods["c"].Try("ping", "-c", "1", "-W", "5", internet4); err != nil {
		t.Errorf("the pod has no network: %v: %s", err, out)
	}
	v.plugin("DEL", "c")
	if removed, err := v.uninstall(); err != nil || len(removed) == 0 {
		t.Errorf("after the pod: removed %q, %v", removed, err)
	}
	v.pods["d"] = nettest.NewNetns(t, "pod-d")
	late := v.n.cmd(call{command: "ADD", id: "d", netns: v.pods["d"].Path, conf: v.n.conf("1.0.0")})
	var said []byte
	v.must(v.node.Do(func() error { said, _ = late.CombinedOutput(); return nil }))
	if !strings.Contains(string(said), "enipool was uninstalled from this node") {
		t.Errorf("an ADD after that says %s", said)
	}
}

func TestANodeThatIsLoadedAgainIsNotCalledUninstalled(t *testing.T) {
	v := newVPC(t, mapped())
	v.plugin("DEL", "a")
	v.plugin("DEL", "b")
	_, err := v.uninstall()
	v.must(err)
	cache := v.n.Cache
	if why := cache.Why(); !strings.Contains(why, "uninstalled") {
		t.Fatalf("after the uninstallation an ADD says %q", why)
	}
	v.load(v.inv)
	if why := cache.Why(); why != "" {
		t.Errorf("an ADD without an address says %q", why)
	}
}
