package operator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// diesThere is a driver of an operator that is killed before it attaches its first ENI.
type diesThere struct {
	driver.Driver
	w    *world
	once *atomic.Bool
}

func (d diesThere) Attach(ctx context.Context, a driver.Attach) (string, error) {
	if d.once.CompareAndSwap(false, true) {
		d.w.leading().cancel()
		return "", &driver.Error{Kind: cloud.ErrUnknown, Detail: "the process has ended"}
	}
	return d.Driver.Attach(ctx, a)
}

// An operator dies between making an ENI and attaching it, and the pods that it was for go. Nobody finishes that ENI: it is deleted, and its
// addresses are the subnet's again.
func TestABegunENIThatNobodyNeedsAnyMoreIsDeleted(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		var once atomic.Bool
		w.wrap = func(d driver.Driver) driver.Driver { return diesThere{d, w, &once} }
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(4)
		w.until(3*time.Minute, w.isQuiet)
		a.set(14)
		w.until(3*time.Minute, once.Load)
		<-w.lead.ended
		a.set(4)
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		w.until(5*time.Minute, w.isQuiet)
		loose := func() (n int) {
			w.View(0, func(tx *sim.Tx) {
				for _, nic := range tx.Interfaces() {
					if nic.Attachment == nil {
						n += len(nic.V4)
					}
				}
			})
			return n
		}
		if loose() == 0 {
			t.Fatal("there is no such ENI: the test shows nothing")
		}
		time.Sleep(2 * time.Hour)
		if n := loose(); n > 0 {
			t.Errorf("two hours later an ENI that is attached nowhere has %d addresses", n)
		}
	})
}
