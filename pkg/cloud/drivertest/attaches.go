package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// attaches is what the comments of Attach, Bind, Detach and Delete say.
var attaches = []sentence{
	{"Attach attaches the ENI to the instance", []need{severalNICs}, attaches1},
	{"Attach attaches the ENI at the device index", []need{severalNICs, indexes}, attachesAt},
	{"an ENI has no device index where NoIndex", []need{severalNICs}, attachesNowhere},
	{"Attach at an index that another ENI has is refused: IndexTaken", []need{severalNICs, indexes}, indexTaken},
	{"Attach of an ENI that is attached is refused: InUse", []need{severalNICs}, attachTwice},
	{"Attach of an ENI that another instance has is refused: InUse", []need{severalNICs, hasOther}, attachElsewhere},
	{"Attach of an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, attachNothing},
	{"where Binds a bound ENI is deleted with its instance", []need{severalNICs, binds, canEnd}, boundGoes},
	{"where Binds an ENI that is not bound stays when its instance goes", []need{severalNICs, binds, canEnd}, unboundStays},
	{"no ENI stays attached to an instance that is gone", []need{severalNICs, bindsNothing, canEnd}, nothingStaysAttached},
	{"Bind of an attachment that is no more is ErrNotFound", []need{severalNICs, binds}, bindsNothingGone},
	{"Detach detaches the ENI", []need{severalNICs}, detaches},
	{"Detach of an ENI that is not attached is refused: Busy, or ErrNotFound", []need{severalNICs}, detachLoose},
	{"Delete deletes the ENI with its addresses", []need{severalNICs}, deletes},
	{"Delete of an ENI that is attached is refused: Busy or InUse", []need{severalNICs}, deleteAttached},
	{"Delete of an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, deleteNothing},
}

func attaches1(a *account) {
	loose := a.loose()
	attachment, err := a.Attach(a.ctx, a.place(loose.ID, a.self.Instance))
	a.must(err)
	on := a.awaitState(loose.ID, driver.Attached)
	if on.Instance != a.self.Instance || on.Attachment != attachment || on.MAC != loose.MAC || on.V4 != loose.V4 {
		a.Errorf("Attach returned attachment %q, the ENI is %+v and was %+v", attachment, on, loose)
	}
	if len(a.look(driver.Filter{Attached: a.self})) != 2 {
		a.Error("the ENI that was attached is not shown at its instance")
	}
}

func attachesAt(a *account) {
	w := a.place(a.loose().ID, a.self.Instance)
	switch {
	case len(a.shape.Cards) > 1:
		w.Card, w.Index = 1, 1
	case a.shape.ENIs > 2:
		w.Index++ // one that is not the lowest, too
	}
	_, err := a.Attach(a.ctx, w)
	a.must(err)
	if on := a.awaitState(w.ID, driver.Attached); on.Index != w.Index || on.Card != w.Card {
		a.Errorf("the ENI that was attached as %+v is at index %d of card %d", w, on.Index, on.Card)
	}
	if a.primary.Index != 0 || a.primary.Card != 0 {
		a.Errorf("the primary ENI is at index %d of card %d", a.primary.Index, a.primary.Card)
	}
	if loose := a.loose(); loose.Index != -1 {
		a.Errorf("an ENI that is attached nowhere has index %d", loose.Index)
	}
}

func attachesNowhere(a *account) {
	if !a.traits.NoIndex {
		a.Skip("the cloud has device indexes")
	}
	if on := a.ready(); on.Index != -1 || a.primary.Index != -1 {
		a.Errorf("in a cloud without device indexes an ENI has index %d, the primary one %d", on.Index, a.primary.Index)
	}
}

func indexTaken(a *account) {
	first := a.ready()
	w := a.place(a.loose().ID, a.self.Instance)
	w.Index, w.Card = first.Index, first.Card
	before := a.all()
	_, err := a.Attach(a.ctx, w)
	a.because(err, driver.IndexTaken)
	a.unchanged(before)
}

func attachTwice(a *account) {
	on := a.ready()
	before := a.all()
	_, err := a.Attach(a.ctx, a.place(on.ID, a.self.Instance))
	a.because(err, a.inUse())
	a.unchanged(before)
}

// inUse is why an ENI that is attached is refused.
func (a *account) inUse() driver.Why {
	if slices.Contains(a.s.Lacks, Telling) {
		return driver.Busy
	}
	return driver.InUse
}

func attachElsewhere(a *account) {
	on := a.attachTo(a.loose().ID, a.s.Other)
	before := a.all()
	_, err := a.Attach(a.ctx, a.place(on.ID, a.self.Instance))
	a.because(err, a.inUse())
	a.unchanged(before)
}

func attachNothing(a *account) {
	before := a.all()
	_, err := a.Attach(a.ctx, a.place(a.nobody("eni"), a.self.Instance))
	a.because(err, driver.NoSuchInterface)
	a.is(err, cloud.ErrNotFound)
	a.unchanged(before)
}

// ended ends the other instance and returns its ENI as it is shown when it has left.
func (a *account) ended(id string) (i driver.Interface) {
	a.Helper()
	a.s.Terminate(a.s.Other)
	a.await("the ENI of an instance that was ended is not attached to it", func() bool {
		i = a.one(id)
		return i.ID == "" || i.State == driver.Loose
	})
	return i
}

func boundGoes(a *account) {
	on := a.attachTo(a.loose().ID, a.s.Other)
	a.must(a.Bind(a.ctx, on.ID, on.Attachment))
	a.must(a.Bind(a.ctx, on.ID, on.Attachment)) // saying it again is fine
	a.await("an ENI that was bound is not told to outlive its instance", func() bool { return !a.one(on.ID).Outlives })
	on.Outlives = false
	a.unchangedBut(on, a.one(on.ID))
	a.s.Terminate(a.s.Other)
	a.await("an ENI that was bound is gone with its instance", func() bool { return a.one(on.ID).ID == "" })
}

func (a *account) unchangedBut(want, got driver.Interface) {
	a.Helper()
	if d := diffValues(want, got); d != "" {
		a.Errorf("the ENI is another than it was (-want +got):\n%s", d)
	}
}

func unboundStays(a *account) {
	on := a.attachTo(a.loose().ID, a.s.Other)
	if left := a.ended(on.ID); left.ID == "" {
		a.Error("an ENI that was not bound is gone with its instance")
	}
}

func nothingStaysAttached(a *account) {
	on := a.attachTo(a.loose().ID, a.s.Other)
	if left := a.ended(on.ID); left.ID != "" && left.Instance != "" {
		a.Errorf("an ENI of an instance that is gone is %+v", left)
	}
}

func bindsNothingGone(a *account) {
	on := a.ready()
	a.must(a.Detach(a.ctx, on, a.mark().Token))
	a.awaitState(on.ID, driver.Loose)
	a.is(a.Bind(a.ctx, on.ID, on.Attachment), cloud.ErrNotFound)
}

func detaches(a *account) {
	on := a.ready()
	a.must(a.Detach(a.ctx, on, a.mark().Token))
	off := a.awaitState(on.ID, driver.Loose)
	if off.Instance != "" || off.Index != -1 || off.Attachment != "" || !slices.Equal(off.Singles, on.Singles) || off.V4 != on.V4 {
		a.Errorf("ENI %+v is, detached, %+v", on, off)
	}
	a.finds(driver.Filter{Attached: a.self}, a.primary.ID)
	a.attachTo(on.ID, a.self.Instance) // and it can be attached again
}

func detachLoose(a *account) {
	on := a.ready()
	a.must(a.Detach(a.ctx, on, a.mark().Token))
	a.awaitState(on.ID, driver.Loose)
	before := a.all()
	if err := a.Detach(a.ctx, on, a.mark().Token); driver.Reason(err) != driver.Busy {
		a.is(err, cloud.ErrNotFound)
	}
	a.unchanged(before)
}

func deletes(a *account) {
	before, free := a.all(), a.subnet(a.in.ID).Free
	one := a.loose()
	a.must(a.Delete(a.ctx, one.ID, a.mark().Token))
	a.await("an ENI that was deleted is not shown", func() bool { return a.one(one.ID).ID == "" })
	a.unchanged(before)
	a.freeIs(free)
}

func deleteAttached(a *account) {
	on := a.ready()
	before := a.all()
	a.because(a.Delete(a.ctx, on.ID, a.mark().Token), driver.Busy, driver.InUse)
	a.unchanged(before)
}

func deleteNothing(a *account) {
	one := a.loose()
	a.must(a.Delete(a.ctx, one.ID, a.mark().Token))
	a.await("an ENI that was deleted is not shown", func() bool { return a.one(one.ID).ID == "" })
	for _, id := range []string{one.ID, a.nobody("eni")} {
		a.because(a.Delete(a.ctx, id, a.mark().Token), driver.NoSuchInterface)
	}
}
