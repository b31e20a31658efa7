package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nodecache"
)

// A script that flushes again and again: the process that the kernel names is gone soon, and the script is what
// people can end.
func TestWhoUndoesARepairIsNamedWithWhatStartedIt(t *testing.T) {
	n := heardNode(t)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if text, _ := n.Changer(0); text != "" {
		t.Errorf("before anybody did: %s", text)
	}
	script := filepath.Join(t.TempDir(), "flush.sh")
	if err := os.WriteFile(script, []byte("while :; do nft flush ruleset; sleep 0.1; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	loop := exec.Command("sh", script)
	if err := loop.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = loop.Process.Kill(); _ = loop.Wait() }()
	want := fmt.Sprintf(", started by `sh %s` (process %d)", script, loop.Process.Pid)
	for text, found := "", false; !strings.Contains(text, want); text, found = n.Changer(0) {
		if found && !strings.HasPrefix(text, "nft (process ") {
			t.Fatalf("told: %s, want %s", text, want)
		}
		select {
		case <-n.Watch.Faults():
		case <-time.After(20 * time.Second):
			t.Fatalf("told at last: %q, want %s", text, want)
		}
		if _, err := n.Sync(t.Context(), nil, nil); err != nil {
			t.Log(err) // the script was at work meanwhile
		}
	}
	if text, _ := n.Changer(nodecache.SinceBoot() + time.Hour); text != "" {
		t.Errorf("of the time before: %s", text)
	}
}

func TestWhoChangedNftablesIsToldAsFarAsItCanBeSeen(t *testing.T) {
	proc := t.TempDir()
	for file, text := range map[string]string{
		"self/comm": "enipool-agent\n", "self/task/12/comm": "enipool-agent\n",
		"700/comm": "firewalld\n", "700/stat": "700 (firewalld) S 1 700", "700/cgroup": "0::/system.slice/firewalld.service\n",
		"1/cmdline": "/sbin/init\x00",
		"41/comm":   "nft\n", "41/stat": "41 (a) b) R 40 41", "41/cgroup": "4:memory:/x\n1:name=systemd:/user.slice\n",
		"40/cmdline": "python3\x00/opt/x.py\x00--password=x\x00",
		"42/comm":    "nft\n", "42/stat": "42 (nft) R 43 42", "43/cmdline": "sh\x00-c\x00nft flush ruleset; echo secret\x00", "42/cgroup": "0::/\n",
		"50/comm": "another\n", "50/stat": "50 (another) R 40 50",
	} {
		path := filepath.Join(proc, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := changers{proc: proc}
	for _, tt := range []struct {
		pid        int
		name, want string
		started    bool
	}{
		{700, "firewalld", "firewalld (process 700), in cgroup /system.slice/firewalld.service", true},
		{41, "nft", "nft (process 41), started by `python3 /opt/x.py` (process 40), in cgroup /user.slice", true},
		{42, "nft", "nft (process 42), started by `sh` (process 43)", true},
		{50, "nft", "nft (process 50)", false}, // another one of a container's own PIDs
		{99, "nft", "nft (process 99)", false}, // ended
	} {
		if got := c.find(tt.pid, tt.name, 0); got.text != tt.want || got.started != tt.started {
			t.Errorf("process %d: %+v, want %q", tt.pid, got, tt.want)
		}
	}
	for pid, name := range map[int]string{12: "enipool-agent", 4711: "enipool-agent"} { // in a container it can't be seen by its number
		if !c.isOwn(pid, name) || c.isOwn(700, "firewalld") || c.isOwn(99, "nft") {
			t.Errorf("process %d is another, or another is this one", pid)
		}
	}
}
