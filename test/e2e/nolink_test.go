package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/status"
	"golang.org/x/sys/unix"
)

// An ENI in use loses its link: pods start on others, people are told, and when the link is
// back its pods have their network again and its addresses are the pool's.
func TestAnENIWhoseLinkVanishesIsToldAndServesAgainWhenItIsBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "nolink", limits: tiny})
	s.configure("pool.batch: 4", "pool.firstENI: 1", rarely)
	s.start()
	s.poolOf(4)
	s.add("a")
	s.reach(internet4, "a")
	device := s.eniOf("a")
	here, away := s.sleeper(0), s.sleeper(unix.CLONE_NEWNET)
	s.node.Run(t, "ip", "link", "set", device, "netns", away)
	missing := "link " + device + " of the ENI "
	s.told("the link is missing", func(st status.Status) bool { return len(st.Unlinked) == 1 && strings.Contains(st.Problem, missing) })
	if out := s.show(); !strings.Contains(out, missing) {
		t.Errorf("pool show:\n%s", out)
	}
	// The ENI in its place is in the kernel before it is in the node cache.
	s.eventually("pool check tells the missing link and nothing else", func() error {
		if out, err := s.ctl("pool", "check"); err == nil || !strings.Contains(out, "must fix: "+missing) || strings.Contains(out, "at the latest") {
			return fmt.Errorf("pool check: %v\n%s", err, out)
		}
		return nil
	})
	if _, page, err := s.get("/metrics"); err != nil || !strings.Contains(page, "\nenipool_links_missing 1\n") {
		t.Errorf("enipool_links_missing is not 1: %v", err)
	}
	s.eventually("4 addresses that pods can use", func() error {
		if c, err := s.count(); err != nil || c.Free < 3 || c.Held == 0 {
			return fmt.Errorf("%+v, %w", c, err)
		}
		return nil
	})
	s.add("b", "c", "d")
	s.reach(internet4, "b", "c", "d")
	s.node.Run(t, "nsenter", "--net=/proc/"+away+"/ns/net", "ip", "link", "set", device, "netns", here)
	s.told("the link is back", func(st status.Status) bool { return len(st.Unlinked) == 0 && st.Problem == "" })
	s.eventually("no address is held", func() error {
		if c, err := s.count(); err != nil || c.Held > 0 {
			return errors.Join(fmt.Errorf("%+v", c), err)
		}
		return nil
	})
	s.reach(internet4, "a", "b", "c", "d")
}

// eniOf returns the link of the ENI that the pod's address is on.
func (s *site) eniOf(id string) string {
	s.t.Helper()
	cached, err := s.view()
	s.must(err)
	for _, a := range cached.Used() {
		if a.Addr.String() == s.address(id, false) {
			nic, _ := cached.Interface(a.ENI)
			return nic.Device
		}
	}
	s.fail("%s has no address", id)
	return ""
}

// sleeper starts a process in the node's namespaces, but for those of flags, and returns its id.
func (s *site) sleeper(flags uintptr) string {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: flags}
	s.must(s.node.Do(cmd.Start))
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return strconv.Itoa(cmd.Process.Pid)
}
