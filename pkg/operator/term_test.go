package operator_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// The lease is deleted, with the number that it had, after a term in which no object was written: the next term has another number.
func TestNoTwoTermsHaveOneNumber(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		before := int64(0)
		for range 3 {
			w.leadWith(ctx, nil)
			time.Sleep(time.Minute)
			epoch := w.lastEpoch()
			if epoch <= before {
				t.Errorf("a term has number %d after %d", epoch, before)
			}
			before = epoch
			w.lead.kill()
			w.mu.Lock()
			w.epoch = 0
			w.mu.Unlock()
		}
	})
}

// Who loses the lease has not done what it was to do, even where nobody has told it to stop yet.
func TestATermThatLosesItsLeaseEndsWithAnError(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		w.lead.lose()
		<-w.lead.ended
		if err := w.lead.err; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	})
}

// An operator that finds what a later leader has written does not lead any more, and may stand for election again.
func TestATermEndsWhereALaterLeaderHasWritten(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.until(3*time.Minute, w.isQuiet)
		n := w.store.node("node-000")
		n.Status.Epoch += 1000
		w.store.putBack(n)
		time.Sleep(time.Minute)
		select {
		case <-w.lead.ended:
		default:
			t.Fatal("it goes on")
		}
		if err := w.lead.err; err == nil || !strings.Contains(err.Error(), "later epoch") {
			t.Errorf("it ends with %v", err)
		}
		w.leadWith(ctx, nil)
		w.agents[0].set(6)
		w.until(3*time.Minute, w.isQuiet)
		w.check()
	})
}

// Leaders take turns again and again while nodes wait: all of them together never send more than the account's share.
func TestLeadersThatTakeTurnsSpendNoMoreThanOne(t *testing.T) {
	const nodes, burst, rate = 90, 15, 0.8
	s := setup{nodes: nodes, buckets: map[string]cloud.Bucket{sim.ActAssign: {Burst: burst, PerSecond: rate}, sim.ActDescribe: {Burst: 100, PerSecond: 20}, sim.ActShape: {Burst: 1000, PerSecond: 100}}}
	play(t, s, func(ctx context.Context, w *world) {
		var sent []time.Duration
		w.admit = func(_ context.Context, action string) {
			if action == sim.ActAssign {
				w.mu.Lock()
				sent = append(sent, w.since())
				w.mu.Unlock()
			}
		}
		for _, a := range w.agents {
			a.set(4)
		}
		w.begin(ctx)
		for range 4 {
			w.leadWith(ctx, nil)
			time.Sleep(25 * time.Second)
			w.lead.kill() // which hands its lease over
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(sent) < burst+20 {
			t.Fatalf("%d calls: the test shows nothing", len(sent))
		}
		for i := range sent {
			for j := i; j < len(sent); j++ {
				if most := burst + rate*(sent[j]-sent[i]).Seconds() + 0.01; float64(j-i+1) > most {
					t.Fatalf("%d calls within %s, the share is %.0f", j-i+1, sent[j]-sent[i], most)
				}
			}
		}
	})
}

// Two Nodes name one instance: the one that had it first is served, as if the other one was not there, and that one's object says why it is not.
func TestTwoNodesThatNameOneInstance(t *testing.T) {
	play(t, setup{nodes: 2}, func(ctx context.Context, w *world) {
		first, second := w.agents[0], w.agents[1]
		w.store.mu.Lock()
		n := w.store.nodes[second.name]
		n.Instance = "i-" + first.name
		w.store.nodes[second.name] = n
		w.store.mu.Unlock()
		var said bytes.Buffer
		w.leadWith(ctx, func(o *operator.Options) { o.Log = slog.New(slog.NewTextHandler(&said, nil)) })
		w.beginWith(ctx, first)
		first.set(7)
		w.until(3*time.Minute, func() bool { return len(first.used()) == 7 })
		go second.run(ctx)
		second.set(7)
		time.Sleep(time.Minute)
		is := w.store.node(second.name)
		if len(is.Status.ENIs) > 0 || is.Status.Instance != "" || len(is.Status.Causes) == 0 || is.Status.Causes[0].Reason != "InstanceUnknown" || !strings.Contains(is.Status.Causes[0].Message, first.name) {
			t.Errorf("%+v", is.Status)
		}
		w.store.remove(second.name) // its agent makes it again
		w.until(3*time.Minute, func() bool { n := w.store.node(second.name); return n != nil && n.UID != is.UID })
		first.set(12)
		w.until(3*time.Minute, func() bool { return len(first.used()) == 12 })
		if strings.Contains(said.String(), "describe failed") {
			t.Errorf("the other's end breaks describes:\n%s", &said)
		}
		w.store.replaceInstance(second.name, "i-"+second.name)
		w.until(3*time.Minute, w.isQuiet)
		w.check()
	})
}
