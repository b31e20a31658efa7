package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/status"
)

// newFastSite is a site whose agent keeps the fast path, with pods on two ENIs that
// send back what they get at UDP port 7.
func newFastSite(t *testing.T, name string) *site {
	t.Helper()
	nettest.Need(t)
	nettest.MountBPF(t)
	nettest.FreeHooks(t)
	s := newSite(t, plan{name: name, limits: eni.Limits{ENIs: 4, V4: 5, V6: 5}})
	s.fastPath("auto")
	s.start()
	s.poolOf(12)
	s.fastPathIs("")
	s.tickAfter()
	s.add(names("near", 4)...) // ENI 0
	s.add("far0")              // ENI 1
	for _, id := range []string{"near0", "far0"} {
		ttlEcho(t, s.pods[id], "7")
	}
	return s
}

// fastPath writes a configuration with the value of the key fastPath, "" for none: the
// previous release does not know it.
func (s *site) fastPath(value string) {
	s.t.Helper()
	lines := []string{"pool.batch: 4", "pool.minPool: 12", "snat: true"}
	if value != "" {
		lines = append(lines, "fastPath: "+value)
	}
	s.configure(lines...)
}

// fastPathIs waits until the agent says that the fast path is on, or off because of
// the cause.
func (s *site) fastPathIs(cause string) {
	s.t.Helper()
	s.told("the fast path, off because of "+strconv.Quote(cause), func(st status.Status) bool {
		if st.FastPath == nil {
			return false
		}
		off := strings.Join(st.FastPath.Off, "\n")
		return (off == "") == (cause == "") && strings.Contains(off, cause)
	})
}

var jumpedIn = regexp.MustCompile(`(?m)^enipool_fast_path_packets_total\{direction="in"\} (\S+)$`)

// packetsIn is what the agent's metric counts of packets to pods that jumped.
func (s *site) packetsIn() (float64, error) {
	_, page, err := s.get("/metrics")
	if err != nil {
		return 0, err
	}
	found := jumpedIn.FindStringSubmatch(page)
	if found == nil {
		return 0, errors.New("there is no metric enipool_fast_path_packets_total")
	}
	return strconv.ParseFloat(found[1], 64)
}

// jumps waits until the metric counts packets that come in now.
func (s *site) jumps(when string) {
	s.t.Helper()
	s.tickAfter()
	before, err := s.packetsIn()
	s.must(err)
	s.eventually(when+": packets take the fast path", func() error {
		now, err := s.packetsIn()
		if err == nil && now < before+10 {
			err = fmt.Errorf("%v jumped, %v before", now, before)
		}
		return err
	})
}

// programs returns which programs see what comes in by the links of the node.
func (s *site) programs() (found map[string][]ebpf.ProgramID) {
	s.t.Helper()
	found = map[string][]ebpf.ProgramID{}
	s.must(s.node.Do(func() error {
		links, err := net.Interfaces()
		for _, l := range links {
			at, err := link.QueryPrograms(link.QueryOptions{Target: l.Index, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return err
			}
			for _, p := range at.Programs {
				found[l.Name] = append(found[l.Name], p.ID)
			}
		}
		return err
	}))
	return found
}

// deviceOf is the node's end of the pod's link.
func (s *site) deviceOf(id string) string {
	s.t.Helper()
	words := strings.Fields(s.node.Run(s.t, "ip", "route", "get", s.address(id, false)))
	for i, word := range words {
		if word == "dev" {
			return words[i+1]
		}
	}
	s.t.Fatalf("no route to %s: %v", id, words)
	return ""
}

// talkFast starts datagrams that come in to a pod of each ENI, and wants them all back
// in the end.
func (s *site) talkFast() (unbroken func()) {
	s.t.Helper()
	stops := map[string]func() (int, int){}
	for _, id := range []string{"near0", "far0"} {
		stops[id] = steady(s.t, s.far, s.address(id, false)+":7")
	}
	return func() {
		s.t.Helper()
		for id, stop := range stops {
			if sent, back := stop(); sent < 100 || back != sent {
				s.t.Errorf("%s: %d of %d datagrams came back", id, back, sent)
			}
		}
	}
}

// pinned tells whether there is anything of the fast path in the bpf file system.
func (s *site) pinned() bool {
	_, err := os.Stat(bpf.Folder(s.cache.Path))
	return err == nil
}

// isGone waits until nothing of the fast path is left, neither pinned nor at a link.
func (s *site) isGone() {
	s.t.Helper()
	s.eventually("the fast path is gone", func() error {
		if left := s.programs(); s.pinned() || len(left) > 0 {
			return fmt.Errorf("pinned: %v, programs %v", s.pinned(), left)
		}
		return nil
	})
}

// The agent gives pods' links its program, the metric counts what jumps, and an agent
// that is killed, started again, stopped, and started without the fast path costs no
// packet.
func TestPodsDoNotNoticeWhatBecomesOfTheAgentOfAFastPath(t *testing.T) {
	s := newFastSite(t, "fast-life")
	s.eventually("each pod's link has the program", func() error {
		if at := s.programs(); len(at[s.deviceOf("near0")]) != 1 || len(at[s.deviceOf("far0")]) != 1 {
			return fmt.Errorf("programs %v", at)
		}
		return nil
	})
	unbroken := s.talkFast()
	s.jumps("the agent runs")
	s.agent.kill()
	time.Sleep(time.Second)
	s.add("while-killed")
	s.start()
	s.fastPathIs("")
	s.jumps("started again after it was killed")
	s.agent.terminate()
	if !s.pinned() {
		t.Error("an agent that is stopped takes the fast path away: a restart would interrupt it")
	}
	s.add("while-stopped")
	s.fastPath("off")
	s.start()
	s.fastPathIs("the key fastPath is off")
	s.isGone()
	s.add("without")
	if at := s.programs(); len(at) > 0 {
		t.Errorf("programs %v at links after an ADD without fast path", at)
	}
	s.fastPath("auto")
	s.fastPathIs("")
	s.jumps("switched on again")
	unbroken()
	s.fastPath("off")
	s.isGone()
}

// A rule that the agent of a fast path was not told of takes effect.
func TestAForeignRuleTakesEffectBesideTheAgentsFastPath(t *testing.T) {
	s := newFastSite(t, "fast-rule")
	c := udpSocket(t, s.far, "0.0.0.0:0", s.address("far0", false)+":7")
	last := byte(0)
	answers := func() bool {
		last++
		if _, err := c.Write([]byte{0, last}); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		for b := make([]byte, 2); ; {
			if _, err := c.Read(b); err != nil {
				return false
			}
			if b[1] == last { // not a late one
				return true
			}
		}
	}
	s.eventually("packets take the fast path", func() error {
		if n, err := s.packetsIn(); err != nil || !answers() || n == 0 {
			return fmt.Errorf("%v jumped, %v", n, err)
		}
		return nil
	})
	rule := strings.Fields("FORWARD -p udp --dport 7 -j DROP")
	s.node.Run(t, "iptables-nft", append([]string{"-w", "-A"}, rule...)...)
	s.eventually("packets are dropped", func() error {
		if answers() {
			return errors.New("a packet got through")
		}
		return nil
	})
	s.fastPathIs("chain FORWARD of ip filter")
	for range 3 {
		if answers() {
			t.Error("a packet got past the rule")
		}
	}
	s.node.Run(t, "iptables-nft", append([]string{"-w", "-D"}, rule...)...)
	s.eventually("packets get through", func() error {
		if !answers() {
			return errors.New("none does")
		}
		return nil
	})
	s.fastPathIs("")
	s.fastPath("off")
	s.isGone()
}

// The previous release knows nothing of a fast path that it finds: packets go on, and
// pods come and go, with its agent, with its plugin, and with this release's again.
func TestAFastPathThatAPreviousReleaseFindsHarmsNobody(t *testing.T) {
	old := previous(t)
	s := newFastSite(t, "fast-back")
	unbroken := s.talkFast()
	s.jumps("this release")
	replace := func(agent, plugin, fastPath, pod string) {
		s.agent.terminate()
		s.use = programs{agent: agent, plugin: plugin}
		s.fastPath(fastPath)
		s.start()
		s.ready()
		s.tickAfter()
		s.add(pod)
		s.eventually("the new pod is reached", func() error {
			if out, err := s.far.Try("ping", "-c", "1", "-W", "0.3", s.address(pod, false)); err != nil {
				return errors.New(out)
			}
			return nil
		})
	}
	replace(old.agent, "", "", "agent-of-before")
	if !s.pinned() {
		t.Error("the previous release's agent took the fast path away")
	}
	replace(old.agent, old.plugin, "", "both-of-before")
	replace("", old.plugin, "auto", "plugin-of-before")
	s.fastPathIs("")
	s.jumps("upgraded again")
	replace("", "", "auto", "none-of-before")
	unbroken()
	s.fastPath("off")
	s.isGone()
}

// Uninstalling takes the fast path away once its pods are gone, and not before.
func TestUninstallingTakesTheFastPathOfAStoppedAgentAway(t *testing.T) {
	s := newFastSite(t, "fast-bye")
	s.agent.terminate()
	program, err := agentProgram()
	s.must(err)
	root := t.TempDir()
	uninstall := func() (said string, code int) {
		t.Helper()
		at := filepath.Join(root, s.cache.Path) // where a container sees it
		s.must(os.MkdirAll(filepath.Dir(at), 0o700))
		cached, err := os.ReadFile(s.cache.Path)
		s.must(err)
		s.must(os.WriteFile(at, cached, 0o600))
		cmd := s.command(program, "uninstall", "--config", s.confPath(), "--root", root)
		var out []byte
		_ = s.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
		return string(out), cmd.ProcessState.ExitCode()
	}
	if said, code := uninstall(); code != 1 || !s.pinned() {
		t.Errorf("exit code %d with living pods, pinned: %v: %s", code, s.pinned(), said)
	}
	s.del("near0", "near1", "near2", "near3", "far0")
	if at := s.programs(); len(at) == 0 {
		t.Error("there is no program at the links of ENIs that could be left")
	}
	if said, code := uninstall(); code != 0 || !strings.Contains(said, "fast path "+bpf.Folder(s.cache.Path)) {
		t.Errorf("exit code %d: %s", code, said)
	}
	if left := s.programs(); s.pinned() || len(left) > 0 {
		t.Errorf("left over: pinned: %v, programs %v", s.pinned(), left)
	}
}
