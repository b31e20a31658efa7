package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/status"
)

// coolDown waits until the plugin's cool-down is so long.
func (s *site) coolDown(d time.Duration) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("a cool-down of %s in the cache", d), func() error {
		cached, err := s.view()
		if err == nil && cached.Settings.CoolDown != d {
			err = fmt.Errorf("it is %s", cached.Settings.CoolDown)
		}
		return err
	})
}

func TestTheAgentTakesOverAChangedConfiguration(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "reload"})
	agent := s.start()
	s.poolOf(16)
	s.add("web")
	s.configure("coolDown: 7s")
	s.coolDown(7 * time.Second)
	agent.says(`msg="configuration reloaded"`)

	// As an editor does that writes in place.
	text, err := os.ReadFile(s.confPath())
	s.must(err)
	s.must(os.WriteFile(s.confPath(), []byte(strings.Replace(string(text), "7s", "8s", 1)), 0o600))
	s.coolDown(8 * time.Second)

	// A broken file is named, and all stays as it is.
	s.configure("coolDown: 9", "colour: red")
	const refused = `level=ERROR msg="configuration is not taken over" error="`
	agent.says(refused + `.*agent.yaml:\\n  coolDown: \\"9\\": must be a duration like .*\\n  colour: unknown key \(line [0-9]+\)"`)
	s.eventually("the refused file in the status", func() error {
		st, err := status.Beside(s.cache.Path).Read()
		if err == nil && (st.Refused == nil || !strings.Contains(st.Refused.Error, "colour") || st.Refused.Since.IsZero() || !st.Ready) {
			err = fmt.Errorf("%+v", st.Refused)
		}
		return err
	})
	s.tickAfter()
	s.coolDown(8 * time.Second)
	s.must(os.Remove(s.confPath()))
	s.must(agent.Cmd.Process.Signal(syscall.SIGHUP))
	agent.says(refused + `read configuration: open .*agent.yaml: no such file or directory; --config names the file"`)
	s.configure("coolDown: 10s")
	s.coolDown(10 * time.Second)

	// SIGHUP does it even where nothing changed.
	before := strings.Count(agent.said(), `msg="configuration reloaded"`)
	s.must(agent.Cmd.Process.Signal(syscall.SIGHUP))
	s.eventually("one more reload", func() error {
		if strings.Count(agent.said(), `msg="configuration reloaded"`) != before+1 {
			return errors.New("not yet")
		}
		return nil
	})
	s.reach(internet4, "web")
	agent.terminate()
	s.reach(internet4, "web")
}

// A ConfigMap's files are links that lead through a link that is swapped.
func TestTheAgentFollowsTheLinksOfAConfigMap(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "configmap"})
	put := func(version, coolDown string) {
		s.configure("coolDown: " + coolDown)
		s.must(os.Mkdir(filepath.Join(s.dir, version), 0o700))
		s.must(os.Rename(s.confPath(), filepath.Join(s.dir, version, "agent.yaml")))
		s.must(os.Symlink(version, filepath.Join(s.dir, "..new")))
		s.must(os.Rename(filepath.Join(s.dir, "..new"), filepath.Join(s.dir, "..data")))
	}
	put("..1", "7s")
	link := filepath.Join(s.dir, "map.yaml")
	s.must(os.Symlink("..data/agent.yaml", link))
	s.start("--config", link)
	s.coolDown(7 * time.Second)
	put("..2", "8s")
	s.coolDown(8 * time.Second)
}

// Each key that can change while the agent runs does; of the others it is said.
func TestWhatAReloadCanNotChangeIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "keys"})
	agent := s.start()
	s.poolOf(16)
	s.configure("maxPods: 20", "pool.batch: 8", "logLevel: debug")
	s.told("a pool for 20 pods in batches of 8", func(st status.Status) bool { return st.MaxPods == 20 && st.Need == 8 })
	// What the cloud's ENIs carry was asked for at the start: without a restart there would be
	// no address of the new family, and none for any pod.
	s.configure("listen: 127.0.0.1:9810", "node: m", "families: [ipv4, ipv6]", "vpcCIDRs: [10.0.0.0/16, 2001:db8::/48]")
	agent.says(`level=WARN msg="some keys change only when the agent is started again" keys="node listen families"`)
	s.tickAfter()
	s.add("web")
	s.reach(internet4, "web")
}

// A node changes the way it routes while its pods go on.
func TestAReloadThatChangesRoutingDoesNotDisturbPods(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "routing", limits: tiny})
	s.configure("pool.batch: 2")
	s.start()
	s.poolOf(2)
	s.add("a", "b", "c") // c is on ENI 1
	s.poolOf(4)
	s.tickAfter()
	before := s.kernel()
	near, far := s.talk("a"), s.talk("c")
	routing := func(want ipam.Routing, with, without string) {
		t.Helper()
		s.configure("pool.batch: 2", "routing: "+want.String())
		s.eventually("routing "+want.String(), func() error {
			cached, err := s.view()
			if err == nil && cached.Settings.Routing != want {
				err = errors.New("not in the cache")
			}
			if text := s.kernel(); err == nil && (!strings.Contains(text, with) || strings.Contains(text, without)) {
				err = errors.New(text)
			}
			return err
		})
		s.reach(internet4, "a", "b", "c")
	}
	const rule, table = "1538:\tfrom 10.0.1.6 lookup 101", "map source4"
	routing(ipam.Rule, rule, table)
	routing(ipam.Map, table, rule)
	near.unbroken(t)
	far.unbroken(t)
	s.sameKernel(before)
}
