package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/status"
)

// overwrite puts text in place of what stands in the file where mark begins.
func overwrite(t *testing.T, path, mark, text string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(file, []byte(mark))
	if at < 0 {
		t.Fatalf("no %q in\n%s", mark, file)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), int64(at)); err != nil {
		t.Fatal(err)
	}
}

// Whatever becomes of the node cache, the agent builds it anew with the owners that
// there were: pods keep their addresses and can be taken off.
func TestTheAgentRebuildsADamagedCacheWithItsOwners(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "damage", limits: tiny})
	s.configure("pool.batch: 2", "pool.minPool: 6", "resync: 300ms")
	agent := s.start()
	s.poolOf(6)
	s.add("a", "b", "c") // c is on ENI 1
	owners, err := s.owners()
	s.must(err)
	tr := s.talk("c")
	for i, c := range []struct {
		name   string
		damage func(path string)
	}{
		{"a used line", func(p string) { overwrite(t, p, "10.0.1.4 ", "10.0.1.9 ") }},
		{"an owner", func(p string) { overwrite(t, p, "pods c eth0", "pods x eth0") }},
		{"a free line", func(p string) { overwrite(t, p, "10.0.1.10 ", "\x00\xff") }},
		{"the head", func(p string) { overwrite(t, p, "enipool-node-cache", "xx") }},
		{"a setting", func(p string) { overwrite(t, p, "routing", "xx") }},
		{"an ENI", func(p string) { overwrite(t, p, "eth1", "eth2") }},
		{"its end", func(p string) { s.must(os.Truncate(p, 5*512+100)) }},
		{"all but its name", func(p string) { s.must(os.Truncate(p, 0)) }},
		{"the file", func(p string) { s.must(os.Remove(p)) }},
		{"the folder", func(p string) { s.must(os.Rename(filepath.Dir(p), s.dir+"/old")) }},
	} {
		c.damage(s.cache.Path)
		s.eventually("the owners after damage to "+c.name, func() error {
			have, err := s.owners()
			if err == nil && !maps.Equal(have, owners) {
				err = fmt.Errorf("%v, want %v", have, owners)
			}
			return err
		})
		s.poolOf(6)
		id := fmt.Sprintf("new%d", i)
		s.add(id)
		s.reach(internet4, "a", "b", "c", id)
		s.del(id)
		if t.Failed() {
			t.Fatalf("after damage to %s", c.name)
		}
	}
	tr.unbroken(t)
	agent.says(`msg="node cache built" .*reason=`)
	agent.terminate()
	// What happens while nobody repairs it is seen afterwards.
	overwrite(t, s.cache.Path, "enipool-node-cache", "xx")
	s.del("b")
	s.start()
	s.eventually("the owners but b", func() error {
		have, err := s.owners()
		if err == nil && len(have) != 2 {
			err = fmt.Errorf("%v", have)
		}
		return err
	})
	s.reach(internet4, "a", "c")
	s.del("a", "c")
}

// An agent that has lost its folder, and with it what it watched, sees what comes
// afterwards as before.
func TestTheAgentSeesPodsAfterItsFolderWasRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "folder", limits: tiny})
	s.configure("pool.batch: 2")
	s.start()
	s.poolOf(2)
	s.add("a", "b")
	s.poolOf(4)
	dir := filepath.Dir(s.cache.Path)
	s.must(os.Rename(dir, dir+".old")) // nobody writes to it while it is removed
	s.must(os.RemoveAll(dir + ".old"))
	s.poolOf(4)
	s.tickAfter()
	s.configure("pool.batch: 2", "resync: 1h")
	s.tickAfter()
	s.must(s.addAll([]string{"c", "d", "e", "f"}, 10*time.Second))
}

// On a full disk pods come and go with what there is; the agent names it and goes on
// when there is room.
func TestAFullDiskIsNamedAndStopsNoPod(t *testing.T) {
	t.Parallel()
	var run string
	t.Cleanup(func() { // after the site's end, which needs the node cache
		nettest.Run(t, "umount", "-l", run)
		_ = os.RemoveAll(filepath.Dir(run))
	})
	s := newSite(t, plan{name: "full", limits: tiny})
	s.configure("pool.batch: 2", "pool.minFree: 0%", "pool.minPool: 2")
	run = filepath.Dir(s.cache.Path)
	s.must(os.Mkdir(run, 0o700))
	nettest.Run(t, "mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", run)
	agent := s.start()
	s.poolOf(2)
	s.ready()
	filler := filepath.Join(run, "filler")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=4k").CombinedOutput(); err == nil {
		t.Fatalf("the disk is not full: %s", out)
	}
	s.add("a", "b")
	s.reach(internet4, "a", "b")
	s.del("a")
	s.add("a")
	if err := s.try("ADD", "c", time.Second); err == nil {
		t.Error("a third pod has an address")
	}
	agent.says("no space left on device")
	if code, _, err := s.get("/healthz"); err != nil || code != 200 {
		t.Errorf("healthz: %d, %v", code, err)
	}
	s.must(os.Remove(filler))
	s.eventually("the third pod's address", func() error { return s.try("ADD", "c", 5*time.Second) })
	s.told("no problem", func(st status.Status) bool { return st.Problem == "" })
}

// systemd-networkd and NetworkManager remove routes that they did not make. With the
// node cache lost after that, the address inside the pod tells whose it is: it goes to no
// second pod, and the pod gets its route back.
func TestARebuiltCacheKnowsPodsWhoseRoutesWereLost(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "routes-lost", limits: tiny})
	s.configure("pool.batch: 2", "pool.minPool: 4", rarely)
	agent := s.start()
	s.poolOf(4)
	s.add("a", "b", "c") // c is on ENI 1
	owners, err := s.owners()
	s.must(err)
	agent.terminate()
	s.node.Run(t, "ip", "route", "flush", "table", "100")
	s.must(os.RemoveAll(filepath.Dir(s.cache.Path)))
	s.start()
	s.eventually("the owners that there were", func() error {
		have, err := s.owners()
		if err == nil && !maps.Equal(have, owners) {
			err = fmt.Errorf("%v, want %v", have, owners)
		}
		return err
	})
	s.eventually("pods reach the world", func() error {
		for _, id := range []string{"a", "b", "c"} {
			if out, err := s.pods[id].Try("ping", "-c", "1", "-W", "1", internet4); err != nil {
				return fmt.Errorf("%s: %s", id, out)
			}
		}
		return nil
	})
	s.add("d")
	s.reach(internet4, "a", "b", "c", "d")
	s.del("a", "b", "c", "d")
}
