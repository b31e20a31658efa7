package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/order"
)

// diskOf is what a node keeps over a boot.
type diskOf struct{ p process }

func (d diskOf) Load() (text []byte, err error) {
	err = d.p.see(func() error { text = d.p.n.kept; return nil })
	return text, err
}

func (d diskOf) Save(text []byte) error {
	return d.p.see(func() error {
		if d.p.n.keptErr == nil {
			d.p.n.kept = slices.Clone(text)
		}
		return d.p.n.keptErr
	})
}

// restored runs a test of a node that has released much since a backup of its object, while its agent is stopped and no operator acts.
func restored(t *testing.T, test func(t *testing.T, n *testNode, op *testOperator, backup order.Object)) {
	operatedWith(t, 40, func(t *testing.T, n *testNode, op *testOperator) {
		sleep(time.Minute)
		backup := op.object()
		for _, k := range n.keys() {
			n.del(k)
		}
		sleep(40 * time.Minute)
		if had := order.Have(backup.Spec, backup.Status); len(n.inCloud()) > had-16 {
			t.Fatalf("the cloud shows %d addresses; the status of before has %d", len(n.inCloud()), had)
		}
		n.kill()
		op.succeed()
		op.set(func(op *testOperator) { op.away = true })
		test(t, n, op, backup)
	})
}

// adoptsNothingOfBefore starts the agent, and pods that would get what was before.
func (n *testNode) adoptsNothingOfBefore(t *testing.T) {
	t.Helper()
	n.start(-1, false)
	sleep(time.Minute)
	for range 40 {
		_ = n.add()
	}
	sleep(10 * time.Minute)
	n.retry()
	n.must(t)
	n.operator.set(func(op *testOperator) { op.away = false })
	sleep(20 * time.Minute)
	n.retry()
	n.must(t)
	n.fillWith(t, 3)
}

// While its agent is away a node's object is put back, and the next leader writes on from there, past what the agent has seen.
func TestAnObjectThatAnotherLeaderHasWrittenOnIsOfBefore(t *testing.T) {
	restored(t, func(t *testing.T, n *testNode, op *testOperator, backup order.Object) {
		s := &backup.Status
		s.Leaders = append(slices.Clone(s.Leaders), order.Leader{Epoch: op.term.Epoch, First: s.Revision + 1})
		s.Epoch, s.Revision = op.term.Epoch, op.object().Status.Revision+5
		op.putBack(backup)
		n.adoptsNothingOfBefore(t)
	})
}

// A node boots while its object is put back: the agent knows what it has seen of it.
func TestWhatAnAgentHasSeenOutlastsABoot(t *testing.T) {
	restored(t, func(t *testing.T, n *testNode, op *testOperator, backup order.Object) {
		op.putBack(backup)
		n.reboot()
		op.boot = "boot-2"
		n.adoptsNothingOfBefore(t)
	})
}

// The backup is of before there was an object: the new one tells the operator that there was another, whose calls may still be under way. What
// another node's disk says counts for nothing.
func TestANewObjectTellsWhatWasSeenBeforeABoot(t *testing.T) {
	restored(t, func(t *testing.T, n *testNode, op *testOperator, _ order.Object) {
		revision := op.object().Status.Revision
		for _, other := range []bool{false, true} {
			op.set(func(op *testOperator) { op.is = order.Object{} })
			n.reboot()
			if other {
				n.kept = []byte(strings.Replace(string(n.kept), `"node":"`, `"node":"x`, 1))
			}
			op.boot += "x"
			n.start(-1, false)
			sleep(time.Minute)
			if is := op.object(); is.Version == "" || other != (is.Spec.SeenRevision == 0) || !other && is.Spec.SeenRevision != revision {
				t.Errorf("another's %v: %+v, the one before had revision %d", other, is, revision)
			}
			n.kill()
		}
		n.start(-1, false)
	})
}

// The disk takes nothing: pods get their addresses all the same, and people hear of it once.
func TestADiskThatTakesNothingStopsNoPod(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, _ *testOperator) {
		var lines strings.Builder
		n.w.log, n.keptErr = slog.New(slog.NewTextHandler(&lines, nil)), errFull
		n.start(-1, false)
		sleep(10 * time.Second)
		for range 4 {
			n.fillWith(t, 10)
		}
		n.stop()
		if count := strings.Count(lines.String(), "can't be kept over a boot"); count != 1 || n.kept != nil {
			t.Errorf("told %d times; %s is kept", count, n.kept)
		}
	})
}

// What can't be read is none, and is written again.
func TestWhatWasKeptAndCantBeReadStopsNoPod(t *testing.T) {
	operated(t, func(t *testing.T, n *testNode, _ *testOperator) {
		n.kept = []byte(`{"node":"n`)
		n.start(-1, false)
		defer func() { n.stop() }()
		sleep(10 * time.Second)
		n.fillWith(t, 10)
		if !strings.Contains(string(n.kept), `"revision":`) {
			t.Errorf("%s is kept", n.kept)
		}
	})
}

func TestADiskKeepsTheLatest(t *testing.T) {
	d := Disk{filepath.Join(t.TempDir(), "enipool", "agent.json.seen")}
	if text, err := d.Load(); text != nil || err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	for _, text := range []string{"[1]", "[]"} {
		if err := d.Save([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Load(); string(got) != text+"\n" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := os.Mkdir(d.Path+".new", 0o700); err != nil { // it can't be written
		t.Fatal(err)
	}
	if err := d.Save([]byte("[2]")); err == nil {
		t.Error("it was written")
	}
	if got, err := d.Load(); string(got) != "[]\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// The store is put back, and the operator meets that later than the agent, which has nothing else to write: it says once more what it wants,
// whatever the mode, and no more than that.
func TestAnAgentThatIsAskedSaysItOnceMore(t *testing.T) {
	asked := func(t *testing.T, op *testOperator, change func(*testOperator)) {
		t.Helper()
		op.set(func(op *testOperator) { op.away = true })
		sleep(20 * time.Minute) // what is idle is said late
		for range 3 {
			op.set(func(op *testOperator) {
				op.is.Observed = -op.is.Generation
				change(op)
				op.put(op.is)
			})
			before := op.object()
			sleep(20 * time.Minute)
			told := op.object()
			writes := told.Generation - before.Generation // the next one takes the number of a node that is served back
			if writes < 1 || writes > 2 || told.Spec.Mode != before.Spec.Mode || order.IsBehind(told.View) || told.IsAsked() {
				t.Errorf("%+v follows on %+v", told, before)
			}
		}
	}
	for _, mode := range []order.Mode{order.Self, order.Joining, order.Operator, order.Leaving} {
		t.Run("it finds "+mode.String(), func(t *testing.T) {
			operatedWith(t, 10, func(t *testing.T, _ *testNode, op *testOperator) {
				asked(t, op, func(op *testOperator) { op.is.Status.Mode = mode })
			})
		})
	}
	t.Run("it leaves", func(t *testing.T) {
		operatedWith(t, 10, func(t *testing.T, n *testNode, op *testOperator) {
			n.stop()
			n.callsBy(agentconf.Sim)
			op.set(func(op *testOperator) { op.away = true })
			n.start(-1, false)
			sleep(time.Minute)
			asked(t, op, func(*testOperator) {})
		})
	})
}
