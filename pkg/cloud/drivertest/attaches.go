package drivertest

import (
	"slices"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
)

// attaches is what the comments of Attach, Bind, Detach and Delete say.
var attaches = []sentence{
	{"Attach attaches the ENI to the instance", []need{severalNICs}, attachesToInstance},
	{"Attach attaches the ENI at the device index", []need{severalNICs, hasIndexes}, attachesAt},
	{"an ENI has no device index where NoIndex", []need{severalNICs}, attachesNowhere},
	{"Attach at an index that another ENI has is refused: IndexTaken", []need{severalNICs, hasIndexes}, indexTaken},
	{"Attach of an ENI that is attached is refused: InUse", []need{severalNICs}, attachTwice},
	{"Attach of an ENI that another instance has is refused: InUse", []need{severalNICs, hasOther}, attachElsewhere},
	{"Attach of an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, attachNothing},
	{"where Binds a bound ENI is deleted with its instance", []need{severalNICs, bindsENIs, canEnd}, boundGoes},
	{"where Binds an ENI that is not bound stays when its instance goes", []need{severalNICs, bindsENIs, canEnd}, unboundStays},
	{"no ENI stays attached to an instance that is gone", []need{severalNICs, bindsNothing, canEnd}, nothingStaysAttached},
	{"Bind of an attachment that is no more is ErrNotFound", []need{severalNICs, bindsENIs}, bindsNothingGone},
	{"Detach detaches the ENI", []need{severalNICs}, detachesFromInstance},
	{"Detach of an ENI that is not attached is refused: Busy, or ErrNotFound", []need{severalNICs}, detachLoose},
	{"Delete deletes the ENI with its addresses", []need{severalNICs}, deletesWithAddresses},
	{"Delete of an ENI that is attached is refused: Busy or InUse", []need{severalNICs}, deleteAttached},
	{"Delete of an ENI that does not exist is refused: NoSuchInterface", []need{severalNICs}, deleteNothing},
}

func attachesToInstance(account *account) {
	loose := account.looseENI()
	attachment, err := account.Attach(account.ctx, account.freePlace(loose.ID, account.self.Instance))
	account.must(err)
	on := account.awaitState(loose.ID, driver.Attached)
	if on.Instance != account.self.Instance || on.Attachment != attachment || on.MAC != loose.MAC || on.V4 != loose.V4 {
		account.Errorf("Attach returned attachment %q, the ENI is %+v and was %+v", attachment, on, loose)
	}
	if len(account.settledENIs(driver.Filter{Attached: account.self})) != 2 {
		account.Error("the ENI that was attached is not shown at its instance")
	}
}

func attachesAt(account *account) {
	w := account.freePlace(account.looseENI().ID, account.self.Instance)
	switch {
	case len(account.shape.Cards) > 1:
		w.Card, w.Index = 1, 1
	case account.shape.ENIs > 2:
		w.Index++ // one that is not the lowest, too
	}
	_, err := account.Attach(account.ctx, w)
	account.must(err)
	if on := account.awaitState(w.ID, driver.Attached); on.Index != w.Index || on.Card != w.Card {
		account.Errorf("the ENI that was attached as %+v is at index %d of card %d", w, on.Index, on.Card)
	}
	if account.primary.Index != 0 || account.primary.Card != 0 {
		account.Errorf("the primary ENI is at index %d of card %d", account.primary.Index, account.primary.Card)
	}
	if loose := account.looseENI(); loose.Index != -1 {
		account.Errorf("an ENI that is attached nowhere has index %d", loose.Index)
	}
}

func attachesNowhere(account *account) {
	if !account.traits.NoIndex {
		account.Skip("the cloud has device indexes")
	}
	if on := account.readyENI(); on.Index != -1 || account.primary.Index != -1 {
		account.Errorf("in a cloud without device indexes an ENI has index %d, the primary one %d", on.Index, account.primary.Index)
	}
}

func indexTaken(account *account) {
	first := account.readyENI()
	w := account.freePlace(account.looseENI().ID, account.self.Instance)
	w.Index, w.Card = first.Index, first.Card
	before := account.allENIs()
	_, err := account.Attach(account.ctx, w)
	account.checkReason(err, cloud.IndexTaken)
	account.checkUnchanged(before)
}

func attachTwice(account *account) {
	on := account.readyENI()
	before := account.allENIs()
	_, err := account.Attach(account.ctx, account.freePlace(on.ID, account.self.Instance))
	account.checkReason(err, account.inUse())
	account.checkUnchanged(before)
}

// inUse is why an ENI that is attached is refused.
func (a *account) inUse() cloud.Why {
	if slices.Contains(a.s.Lacks, Telling) {
		return cloud.Busy
	}
	return cloud.InUse
}

func attachElsewhere(account *account) {
	on := account.attachTo(account.looseENI().ID, account.s.Other)
	before := account.allENIs()
	_, err := account.Attach(account.ctx, account.freePlace(on.ID, account.self.Instance))
	account.checkReason(err, account.inUse())
	account.checkUnchanged(before)
}

func attachNothing(account *account) {
	before := account.allENIs()
	_, err := account.Attach(account.ctx, account.freePlace(account.unknownID("eni"), account.self.Instance))
	account.checkReason(err, cloud.NoSuchInterface)
	account.checkKind(err, cloud.ErrNotFound)
	account.checkUnchanged(before)
}

// endOther ends the other instance and returns its ENI as it is shown when it has left.
func (a *account) endOther(id string) (i driver.Interface) {
	a.Helper()
	a.s.Terminate(a.s.Other)
	a.waitUntil("the ENI of an instance that was ended is not attached to it", func() bool {
		i = a.settledENI(id)
		return i.ID == "" || i.State == driver.Loose
	})
	return i
}

func boundGoes(account *account) {
	on := account.attachTo(account.looseENI().ID, account.s.Other)
	account.must(account.Bind(account.ctx, on.ID, on.Attachment))
	account.must(account.Bind(account.ctx, on.ID, on.Attachment)) // saying it again is fine
	account.waitUntil("an ENI that was bound is not told to outlive its instance", func() bool { return !account.settledENI(on.ID).Outlives })
	on.Outlives = false
	account.unchangedBut(on, account.settledENI(on.ID))
	account.s.Terminate(account.s.Other)
	account.waitUntil("an ENI that was bound is gone with its instance", func() bool { return account.settledENI(on.ID).ID == "" })
}

func (a *account) unchangedBut(want, got driver.Interface) {
	a.Helper()
	if d := diffValues(want, got); d != "" {
		a.Errorf("the ENI is another than it was (-want +got):\n%s", d)
	}
}

func unboundStays(account *account) {
	on := account.attachTo(account.looseENI().ID, account.s.Other)
	if left := account.endOther(on.ID); left.ID == "" {
		account.Error("an ENI that was not bound is gone with its instance")
	}
}

func nothingStaysAttached(account *account) {
	on := account.attachTo(account.looseENI().ID, account.s.Other)
	if left := account.endOther(on.ID); left.ID != "" && left.Instance != "" {
		account.Errorf("an ENI of an instance that is gone is %+v", left)
	}
}

func bindsNothingGone(account *account) {
	on := account.readyENI()
	account.must(account.Detach(account.ctx, on, account.newMark().Token))
	account.awaitState(on.ID, driver.Loose)
	account.checkKind(account.Bind(account.ctx, on.ID, on.Attachment), cloud.ErrNotFound)
}

func detachesFromInstance(account *account) {
	on := account.readyENI()
	account.must(account.Detach(account.ctx, on, account.newMark().Token))
	off := account.awaitState(on.ID, driver.Loose)
	if off.Instance != "" || off.Index != -1 || off.Attachment != "" || !slices.Equal(off.Singles, on.Singles) || off.V4 != on.V4 {
		account.Errorf("ENI %+v is, detached, %+v", on, off)
	}
	account.checkFinds(driver.Filter{Attached: account.self}, account.primary.ID)
	account.attachTo(on.ID, account.self.Instance) // and it can be attached again
}

func detachLoose(account *account) {
	on := account.readyENI()
	account.must(account.Detach(account.ctx, on, account.newMark().Token))
	account.awaitState(on.ID, driver.Loose)
	before := account.allENIs()
	if err := account.Detach(account.ctx, on, account.newMark().Token); driver.Reason(err) != cloud.Busy {
		account.checkKind(err, cloud.ErrNotFound)
	}
	account.checkUnchanged(before)
}

func deletesWithAddresses(account *account) {
	before, free := account.allENIs(), account.settledSubnet(account.in.ID).Free
	one := account.looseENI()
	account.must(account.Delete(account.ctx, one.ID, account.newMark().Token))
	account.waitUntil("an ENI that was deleted is not shown", func() bool { return account.settledENI(one.ID).ID == "" })
	account.checkUnchanged(before)
	account.freeIs(free)
}

func deleteAttached(account *account) {
	on := account.readyENI()
	before := account.allENIs()
	account.checkReason(account.Delete(account.ctx, on.ID, account.newMark().Token), cloud.Busy, cloud.InUse)
	account.checkUnchanged(before)
}

func deleteNothing(account *account) {
	one := account.looseENI()
	account.must(account.Delete(account.ctx, one.ID, account.newMark().Token))
	account.waitUntil("an ENI that was deleted is not shown", func() bool { return account.settledENI(one.ID).ID == "" })
	for _, id := range []string{one.ID, account.unknownID("eni")} {
		account.checkReason(account.Delete(account.ctx, id, account.newMark().Token), cloud.NoSuchInterface)
	}
}
