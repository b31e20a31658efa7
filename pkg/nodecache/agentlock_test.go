package nodecache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/filelock"
	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

func TestNobodyElseMayWhileAnAgentKeepsTheNode(t *testing.T) {
	c := Cache{Path: filepath.Join(t.TempDir(), "new", "node.cache")}
	if _, running := c.Agent(); running {
		t.Error("an agent where there is not even a folder")
	}
	ran := false
	run := func() error {
		ran = true
		if _, running := c.Agent(); !running {
			t.Error("an agent could start meanwhile")
		}
		return nil
	}
	if err := c.WithoutAgent(run); err != nil || !ran {
		t.Fatalf("ran: %t, %v", ran, err)
	}
	l := flock.New(c.AgentLock(), flock.SetPermissions(0o600)) // as the agent does it
	if got, err := l.TryLock(); !got || err != nil {
		t.Fatalf("%t, %v", got, err)
	}
	if holder, running := c.Agent(); !running || holder.PID != os.Getpid() {
		t.Errorf("%s, %t", holder, running)
	}
	ran = false
	var agent *AgentError
	if err := c.WithoutAgent(run); !errors.As(err, &agent) || agent.Agent.PID != os.Getpid() || ran {
		t.Errorf("ran: %t, %v", ran, err)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	if err := c.WithoutAgent(func() error { return boom }); !errors.Is(err, boom) {
		t.Error(err)
	}
	if _, running := c.Agent(); running {
		t.Error("the lock was not given back")
	}
}

// Agent shares the lock for a moment, and a hundred pending ADDs may call it at once: none of
// them is an agent.
func TestWhoOnlyAsksForAnAgentIsNone(t *testing.T) {
	c := Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	asks, err := os.Create(c.AgentLock())
	if err != nil {
		t.Fatal(err)
	}
	defer asks.Close()
	if err := filelock.Flock(int(asks.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.WithoutAgent(func() error { return nil }) }()
	time.Sleep(20 * time.Millisecond) // it may try meanwhile, and must go on trying
	if err := filelock.Flock(int(asks.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAnAgentThatIsNotAtWorkIsToldWithWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		agent   filelock.Holder
		running bool
		want    string
	}{
		{filelock.Holder{}, false, "no agent runs on this node: start it (" + whereAgent + ")"},
		{filelock.Holder{PID: 7, Stopped: true}, true, "the agent (process 7) is stopped: kill -CONT 7 lets it go on"},
		{filelock.Holder{PID: 7}, true, ""},
		{filelock.Holder{}, true, ""},
	} {
		if got := agentAway(tt.agent, tt.running); got != tt.want {
			t.Errorf("%+v, running %t: %q, want %q", tt.agent, tt.running, got, tt.want)
		}
	}
}
