package operator_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/kube/crd"
)

// pages is a driver whose pages lack what they should have, for some seconds from the first page on.
type pages struct {
	driver.Driver
	lack  *atomic.Pointer[func(driver.Interface) (driver.Interface, bool)]
	first time.Time
}

func (p *pages) Page(ctx context.Context, s driver.Scan) (driver.Page, error) {
	got, err := p.Driver.Page(ctx, s)
	lack := p.lack.Load()
	if lack == nil || err != nil {
		p.first = time.Time{}
		return got, err
	}
	if p.first.IsZero() {
		p.first = time.Now()
	}
	if time.Since(p.first) > 5*time.Second {
		return got, nil
	}
	var some []driver.Interface
	for _, i := range got.Interfaces {
		if i, there := (*lack)(i); there {
			some = append(some, i)
		}
	}
	got.Interfaces = some
	return got, nil
}

// A describe that lacks for once what is there changes no object: neither one of a few instances nor one of the whole VPC, whether it lacks
// an address, an ENI, an instance, or everything.
func TestADescribeThatFlapsWritesNothing(t *testing.T) {
	of := func(i driver.Interface, node string) bool {
		return i.Instance == "i-"+node || i.Mark.Instance == "i-"+node
	}
	for name, lack := range map[string]func(driver.Interface) (driver.Interface, bool){
		"addresses": func(i driver.Interface) (driver.Interface, bool) { i.Singles = nil; return i, true },
		"ENIs":      func(i driver.Interface) (driver.Interface, bool) { return i, i.Primary },
		"a node":    func(i driver.Interface) (driver.Interface, bool) { return i, !of(i, "node-001") },
		"all":       func(i driver.Interface) (driver.Interface, bool) { return i, false },
	} {
		scans := []int{200}
		if name == "addresses" || name == "all" {
			scans = append(scans, 1)
		}
		for _, perScan := range scans {
			t.Run(name+map[int]string{200: " of instances", 1: " of the VPC"}[perScan], func(t *testing.T) {
				play(t, setup{nodes: 3, perScan: perScan}, func(ctx context.Context, w *world) {
					var now atomic.Pointer[func(driver.Interface) (driver.Interface, bool)]
					w.wrap = func(d driver.Driver) driver.Driver { return &pages{Driver: d, lack: &now} }
					w.leadWith(ctx, nil)
					w.begin(ctx)
					for _, a := range w.agents {
						a.set(14)
					}
					w.until(3*time.Minute, w.isQuiet)
					time.Sleep(6 * time.Minute)
					before, calls := w.store.versions(), w.Calls()[sim.ActDescribe]
					now.Store(&lack)
					time.Sleep(6 * time.Minute) // a describe of everything, and what follows from it
					now.Store(nil)
					if n := w.store.versions() - before; n != 0 {
						t.Errorf("%d writes; node-001: %+v", n, w.store.node("node-001").Status)
					}
					if n := w.Calls()[sim.ActDescribe] - calls; n < 2 || n > 40 {
						t.Errorf("%d describes", n)
					}
					w.check()
				})
			})
		}
	}
}

// What is really gone the second describe tells, a consistency window after the first.
func TestWhatIsGoneIsToldByTheSecondDescribe(t *testing.T) {
	play(t, setup{nodes: 2, perScan: 200}, func(ctx context.Context, w *world) {
		var describes []time.Time
		w.admit = func(_ context.Context, action string) {
			if action == sim.ActDescribe {
				w.mu.Lock()
				describes = append(describes, time.Now())
				w.mu.Unlock()
			}
		}
		w.leadWith(ctx, nil)
		w.begin(ctx)
		a := w.agents[0]
		a.set(14)
		w.until(3*time.Minute, w.isQuiet)
		time.Sleep(11 * time.Minute)
		describes = nil
		a.mu.Lock()
		gone := a.state.Used()[0].Addr
		a.mu.Unlock()
		w.must(w.TakeAway(gone))
		has := func() bool {
			return slices.ContainsFunc(w.store.node(a.name).Status.ENIs, func(e crd.ENI) bool { return slices.Contains(e.Addresses, gone.String()) })
		}
		w.until(6*time.Minute, func() bool { return !has() })
		w.mu.Lock()
		first := describes[0]
		w.mu.Unlock()
		if took := time.Since(first); took < lease.Settle || took > lease.Settle+5*time.Second {
			t.Errorf("told %s after the first describe that lacked it", took)
		}
	})
}

// A node of which a describe fails alone is described again soon, ever less often, and is not taken for one that is gone.
func TestANodeThatIsNotDescribedIsDescribedAgain(t *testing.T) {
	play(t, setup{nodes: 2, perScan: 200, buckets: map[string]cloud.Bucket{}}, func(ctx context.Context, w *world) {
		var now atomic.Pointer[func(driver.Interface) (driver.Interface, bool)]
		lack := func(i driver.Interface) (driver.Interface, bool) { return i, i.Instance != "i-node-001" }
		w.wrap = func(d driver.Driver) driver.Driver { return &pages{Driver: d, lack: &now} }
		now.Store(&lack)
		w.leadWith(ctx, nil)
		w.begin(ctx)
		for _, a := range w.agents {
			a.set(4)
		}
		// The first describe of the term lacks it. The next full one comes five minutes later.
		w.until(time.Minute, w.isQuiet)
		w.check()
	})
}
