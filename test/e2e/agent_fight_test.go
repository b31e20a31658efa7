package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/status"
)

// Something else on the node, as another agent, removes a rule each time it is put back:
// that is told as what it is, with one warning.
func TestSomebodyWhoUndoesEachRepairIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "fight", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	agent := s.start()
	s.poolOf(2)
	s.add("pod0")
	s.rested()
	other := exec.Command("sh", "-c", "while :; do ip rule del priority 512 2>/dev/null; sleep 0.2; done")
	s.must(s.node.Do(other.Start))
	end := func() { _ = other.Process.Kill(); _ = other.Wait() }
	t.Cleanup(end)
	const rule = "add rule 512: from all lookup 100"
	of := func(st status.Status) (u status.Undone) {
		for _, u := range st.Undone {
			if strings.HasPrefix(u.Change, rule) {
				return u
			}
		}
		return u
	}
	s.told("a rule is undone again and again", func(st status.Status) bool { return of(st).Times >= 15 && strings.Contains(st.Problem, rule) })
	st, err := s.status()
	s.must(err)
	if u := of(st); !u.Last.After(u.First) || !strings.Contains(u.Who, "a second agent") {
		t.Errorf("status tells %+v", u)
	}
	if out := s.show(); !strings.Contains(out, "something on this node undoes what the agent repairs, ") || !strings.Contains(out, rule) {
		t.Errorf("pool show:\n%s", out)
	}
	if _, page, err := s.get("/metrics"); err != nil || !strings.Contains(page, "\nenipool_repairs_undone 1\n") {
		t.Errorf("enipool_repairs_undone is not 1: %v, %+v", err, st.Undone)
	}
	const warning = `level=WARN msg="what is repaired is undone again and again by something on this node" change="` + rule
	if n := strings.Count(agent.said(), warning); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
	end()
	s.eventually("the rule is back", func() error {
		if rules := s.node.Run(t, "ip", "rule"); !strings.Contains(rules, "512:") {
			return errors.New(rules)
		}
		return nil
	})
	s.reach(internet4, "pod0")
}

// The process that flushes is gone a millisecond later: the script that starts it is named, and the sentence stands once.
func TestTheScriptThatFlushesTheRulesetIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "flush", limits: tiny})
	s.configure("pool.batch: 2", rarely)
	s.start()
	s.poolOf(2)
	script := filepath.Join(t.TempDir(), "flush.sh")
	s.must(os.WriteFile(script, []byte("while :; do nft flush ruleset; sleep 0.3; done\n"), 0o600))
	other := exec.Command("sh", script)
	s.must(s.node.Do(other.Start))
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	want := fmt.Sprintf("; by nft (process [0-9]+), started by `sh %s` (process %d)", script, other.Process.Pid)
	by := regexp.MustCompile(strings.NewReplacer("(", `\(`, ")", `\)`).Replace(want))
	s.told("the script is named", func(st status.Status) bool { return len(st.Undone) > 0 && by.MatchString(st.Problem) })
	if out := s.show(); strings.Count(out, "something on this node undoes") != 1 {
		t.Errorf("pool show:\n%s", out)
	}
}
