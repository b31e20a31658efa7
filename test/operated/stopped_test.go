package operated

import (
	"errors"
	"syscall"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// The leader is stopped while the cloud has its request to unassign addresses. Its successor ends the release, pods come again, and only then
// the cloud carries out the request of before. Woken beside the successor the leader of before changes nothing.
func TestALeaderIsStoppedInTheMiddleOfARelease(t *testing.T) {
	t.Parallel()
	b := newBed(t, "stopped", sim.ReuseLatest)
	first, door := b.operator("first")
	b.api.Eventually("the first operator leads", b.says("first", "this operator leads"))
	b.operator("second")
	b.agent()
	b.up("a", "b", "c", "d", "e", "f")
	b.complete("a pool for six pods")

	held := door.hold("Unassign")
	b.end("c", "d", "e", "f")
	b.remove("c", "d", "e", "f")
	b.api.Eventually("the first operator unassigns", func() error {
		select {
		case <-held:
			return nil
		default:
			return errors.New("the cloud has no request for it")
		}
	})
	before := len(b.inAccount())
	b.must(first.Cmd.Process.Signal(syscall.SIGSTOP))
	b.api.Eventually("the second operator leads", b.says("second", "this operator leads"))
	b.shrinks(before)
	b.complete("the release has ended")

	b.up("g", "h", "i", "j")
	b.complete("a pool for six pods again")
	if n, err := b.object(); err != nil || len(n.Status.Quarantined) == 0 {
		t.Errorf("no pod may have what the late request takes: %+v, %v", n.Status, err)
	}
	door.open()
	b.complete("the late request took nothing that pods use")
	changes := door.changes()
	b.must(first.Cmd.Process.Signal(syscall.SIGCONT))
	b.api.Eventually("the first operator knows its successor", b.says("first", "another operator leads"))
	b.end("a", "g")
	b.remove("a", "g")
	b.up("k", "l", "m")
	b.complete("seven pods, others among them")
	if now := door.changes(); now != changes {
		t.Errorf("the leader of before has made %d more changes", now-changes)
	}
	if !first.Alive() {
		t.Error("the leader of before has ended: nobody would follow the second")
	}
}
