package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/operator"
)

// secondary returns an ENI of the node that is not its primary one.
func (w *world) secondary() (nic sim.Interface) {
	w.View(0, func(tx *sim.Tx) {
		for _, i := range tx.Interfaces() {
			if i.Attachment != nil && i.Attachment.Index > 0 {
				nic = i
			}
		}
	})
	return nic
}

// regroup gives an ENI other security groups, and has it outlive its instance, as people may do.
func (w *world) regroup(nic sim.Interface, groups ...string) {
	w.Helper()
	no := false
	w.must(w.Update(func(tx *sim.Tx) error {
		return tx.Modify(nic.ID, sim.Edit{Groups: groups, Attachment: nic.Attachment.ID, DeleteOnTermination: &no})
	}))
}

// grouped is a world of a node whose ENIs are of one group, and has a second ENI.
func grouped(t *testing.T, run func(ctx context.Context, w *world)) {
	t.Helper()
	play(t, setup{nodes: 1, checks: time.Minute}, func(ctx context.Context, w *world) {
		for _, id := range []string{"sg-1", "sg-2"} {
			w.AddGroup(sim.Group{ID: id, Name: id})
		}
		w.must(w.Update(func(tx *sim.Tx) error { return tx.Modify(tx.Interfaces()[0].ID, sim.Edit{Groups: []string{"sg-1"}}) }))
		w.leadWith(ctx, nil)
		w.begin(ctx)
		w.agents[0].set(20)
		w.until(3*time.Minute, w.isQuiet)
		run(ctx, w)
	})
}

// What people change is changed back, and an ENI that is made to outlive its instance goes with it again; where nothing differs no
// request is made.
func TestUpkeepMakesRequestsOnlyWhereSomethingDiffers(t *testing.T) {
	grouped(t, func(ctx context.Context, w *world) {
		calls := w.Calls()[sim.ActModify]
		time.Sleep(time.Hour)
		if n := w.Calls()[sim.ActModify] - calls; n != 0 {
			t.Errorf("%d changes of ENIs that are as they are to be", n)
		}
		w.regroup(w.secondary(), "sg-2")
		time.Sleep(time.Hour)
		if nic := w.secondary(); !slices.Equal(nic.Groups, []string{"sg-1"}) {
			t.Errorf("it has %v", nic.Groups)
		}
		w.lead.kill() // one that does not remember that it has bound this attachment
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		time.Sleep(time.Hour)
		if nic := w.secondary(); !nic.Attachment.DeleteOnTermination {
			t.Error("it does not go with its instance")
		}
		if n := w.Calls()[sim.ActModify] - calls; n != 2 {
			t.Errorf("%d changes of one ENI, want one of its groups and one of its attachment", n)
		}
		w.check()
	})
}

// What the role may not change is tried ever more rarely, and pods get their addresses all the same.
func TestUpkeepThatIsRefusedComesRarely(t *testing.T) {
	grouped(t, func(_ context.Context, w *world) {
		w.SetFaults(sim.Chance{Action: sim.ActModify, Percent: 100, Fault: sim.Fault{Err: &sim.Error{Reason: sim.Forbidden}}})
		calls := w.Calls()[sim.ActModify]
		w.regroup(w.secondary(), "sg-2")
		time.Sleep(6 * time.Hour)
		if n := w.Calls()[sim.ActModify] - calls; n < 2 || n > 12 {
			t.Errorf("%d attempts in 6 hours", n)
		}
		w.agents[0].set(22)
		w.until(3*time.Minute, w.isQuiet)
		w.SetFaults()
		time.Sleep(2 * time.Hour)
		if nic := w.secondary(); !slices.Equal(nic.Groups, []string{"sg-1"}) {
			t.Errorf("once it may it has %v", nic.Groups)
		}
	})
}

// An operator that observes changes nothing, and neither does one whose node calls the cloud itself.
func TestUpkeepIsOnlyForNodesThatTheOperatorCallsFor(t *testing.T) {
	grouped(t, func(ctx context.Context, w *world) {
		w.lead.kill()
		w.regroup(w.secondary(), "sg-2")
		time.Sleep(lease.Duration)
		w.leadWith(ctx, func(o *operator.Options) { o.Observe = true })
		time.Sleep(time.Hour)
		if nic := w.secondary(); !slices.Equal(nic.Groups, []string{"sg-2"}) {
			t.Errorf("an observer leaves it with %v", nic.Groups)
		}
		w.lead.kill()
		a := w.agents[0]
		a.mu.Lock()
		a.mode = "Self"
		a.mu.Unlock()
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		w.until(10*time.Minute, func() bool { return w.store.node(a.name).Status.Mode == "Self" })
		w.regroup(w.secondary(), "sg-2")
		time.Sleep(time.Hour)
		if nic := w.secondary(); !slices.Equal(nic.Groups, []string{"sg-2"}) {
			t.Errorf("of a node that calls itself it has %v", nic.Groups)
		}
	})
}
