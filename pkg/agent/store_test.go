package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestMemoryOutlivesTheProcessAndNotTheBoot(t *testing.T) {
	f := File{Path: filepath.Join(t.TempDir(), "deep", "agent.json")}
	if text, err := f.Load(); text != nil || err != nil {
		t.Errorf("nothing saved: %s, %v", text, err)
	}
	for _, memory := range []string{`{"mode":"batch"}`, `{"mode":"burstable"}`} {
		if err := f.Save([]byte(memory)); err != nil {
			t.Fatal(err)
		}
		if text, err := f.Load(); string(text) != memory || err != nil {
			t.Errorf("saved %s, loaded %s, %v", memory, text, err)
		}
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"boot":"`, `"boot":"x`, 1)
	if err := os.WriteFile(f.Path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := f.Load(); text != nil || err != nil {
		t.Errorf("of another boot: %s, %v; want nothing", text, err)
	}
	if err := os.WriteFile(f.Path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Load(); err == nil {
		t.Error("a damaged file is no error")
	}
}

// Whoever reads that the memory can't be written learns of which file system and what to do, once.
func TestAMemoryThatFindsNoRoomSaysWhatToDo(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "agent.json")}
	if err := os.Symlink("/dev/full", f.Path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte("{}")); err == nil || !strings.Contains(err.Error(), " is full: free space there (df ") {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log logged
		_, n := one(t, eni.Limits{ENIs: 3, V4: 10}, func(n *testNode) { n.w.log = slog.New(slog.NewTextHandler(&log, nil)) })
		defer n.stop()
		n.mu.Lock()
		n.full = true
		n.mu.Unlock()
		for range 20 { // takes another ENI, whose intent is written down first
			_ = n.add()
		}
		sleep(time.Minute)
		ticks, told := log.count(`msg="tick failed"`), log.count("write agent's memory")
		if cause := n.status().Problem; ticks == 0 || strings.Count(cause, "write agent's memory") != 1 || strings.Contains(cause, "\n") {
			t.Errorf("the cause is %q, %d ticks failed", cause, ticks)
		}
		if told != ticks {
			t.Errorf("%d ticks failed and tell it %d times", ticks, told)
		}
	})
}
