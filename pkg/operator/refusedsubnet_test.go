package operator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// notices are what people are told.
type notices struct {
	mu   sync.Mutex
	list []operator.Notice
}

func (n *notices) tell(one operator.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, one)
}

// count returns how often people were told of a reason.
func (n *notices) count(reason string) (times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range n.list {
		if one.Reason == reason {
			times++
		}
	}
	return times
}

// Somebody's admission policy refuses the objects of subnets: people find that in a log, an event or the nodes' causes.
func TestASubnetThatCantBeMadeIsToldToPeople(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		w.store.refuses = func(*crd.Subnet) error { return errors.New("denied the request: label owner is missing") }
		var said bytes.Buffer
		var told notices
		w.leadWith(ctx, func(o *operator.Options) {
			o.Log, o.Tell = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})), told.tell
		})
		w.begin(ctx)
		w.agents[0].set(20) // more than its first ENI carries
		time.Sleep(30 * time.Minute)
		n := w.store.node(w.agents[0].name)
		if len(n.Status.ENIs) > 1 {
			t.Fatal("it has an ENI in a subnet without object: the test shows nothing")
		}
		for _, one := range told.list {
			said.WriteString(one.Message)
		}
		if words := "label owner is missing"; !strings.Contains(said.String()+fmt.Sprint(n.Status.Causes), words) {
			t.Errorf("%d of %d slots for half an hour, and nobody is told why the subnet has no object: causes %+v, log and events:\n%s", n.Status.Slots, n.Spec.Slots, n.Status.Causes, &said)
		}
	})
}

// When it may be made it is made soon, and people are told once of each reason.
func TestASubnetThatWasRefusedIsMadeLater(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var told notices
		var refusing atomic.Bool
		refusing.Store(true)
		w.store.refuses = func(*crd.Subnet) error {
			if refusing.Load() {
				return errors.New("denied the request")
			}
			return nil
		}
		w.leadWith(ctx, func(o *operator.Options) { o.Tell = told.tell })
		w.begin(ctx)
		a := w.agents[0]
		a.set(20)
		time.Sleep(20 * time.Minute)
		if n := told.count("Refused"); n != 1 {
			t.Errorf("people are told %d times", n)
		}
		if causes := fmt.Sprint(w.store.node(a.name).Status.Causes); !strings.Contains(causes, "the object of subnet a can't be made: denied the request") {
			t.Errorf("the causes are %s", causes)
		}
		refusing.Store(false)
		if took := w.until(10*time.Minute, func() bool { return len(a.used()) == 20 }); took > 2*time.Minute {
			t.Errorf("it takes %s", took)
		}
	})
}
