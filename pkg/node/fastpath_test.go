package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

// A burst of changes of others costs a few readings of their rules and not one each,
// and the last change is among what is read.
func TestABurstOfChangesIsReadTogetherByTheFastPathsKeeper(t *testing.T) {
	nettest.Need(t)
	nettest.MountBPF(t)
	nettest.FreeHooks(t)
	n, state := newNode(t, 1)
	n.put(t, state)
	// A round of a busy machine takes longer than what is vouched for.
	f := &FastPath{Cache: n.Cache, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Changed: make(chan struct{}, 1), VouchFor: time.Minute}
	f.Switch(true)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
		f.Switch(false)
		f.Keep(context.Background())
	})
	waitFor(t, "on", func() bool { return len(f.Status().Off) == 0 })
	const changes = 1000
	words := "add table ip t\nadd chain ip t c { type filter hook forward priority 0; }\n"
	for i := range changes {
		words += fmt.Sprintf("add rule ip t c ip saddr 192.0.2.%d accept\n", i%250)
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	began, before := time.Now(), f.looks()
	nettest.Run(t, "sh", "-c", "nft -i <"+file) // each line is a change of its own
	read, took := f.looks()-before, time.Since(began)
	t.Logf("%d changes in %s, read %d times", changes, took, read)
	// Each look may be repeated twice, where a change tore it.
	if most := 3 * (int(took/leastPause) + 2); read > most {
		t.Errorf("the rules were read %d times in %s in which they changed %d times, want %d at most", read, took, changes, most)
	}
	nettest.Run(t, "nft", "add rule ip t c drop")
	waitFor(t, "off", func() bool { return len(f.Status().Off) > 0 })
	nettest.Run(t, "nft", "delete table ip t")
	waitFor(t, "on again", func() bool { return len(f.Status().Off) == 0 })
}

// An agent whose node has no fast path does not wake for it, and begins with it at once when it is switched on.
func TestTheFastPathsKeeperRestsWhileItIsSwitchedOff(t *testing.T) {
	f := &FastPath{Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}, Log: slog.New(slog.DiscardHandler), Changed: make(chan struct{}, 1)}
	if f.untilWanted() != nil {
		t.Error("it rests before it has looked whether something is left")
	}
	f.Keep(t.Context())
	wanted := f.untilWanted()
	if wanted == nil {
		t.Fatalf("it looks again and again: %v", f.Status().Off)
	}
	f.Switch(false)
	select {
	case <-wanted:
		t.Error("it wakes when it is switched off once more")
	default:
	}
	f.Switch(true)
	select {
	case <-wanted:
	default:
		t.Error("it goes on resting when it is switched on")
	}
	if f.untilWanted() != nil {
		t.Error("it rests though it is wanted")
	}
}

// looks is how many looks at everything found nothing in the way: each has an epoch of
// its own.
func (f *FastPath) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.epoch / 2)
}

func waitFor(t *testing.T, what string, as func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !as(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the fast path is not %s", what)
		}
	}
}
