package sim

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
)

// Attach is a wish for an ENI's place.
type Attach struct {
	Interface, Instance string
	Index               int // -1 is the lowest free one of the card
	Card                int
	DeleteOnTermination bool
}

// Attach begins to attach an ENI, and is through at once where that takes no time.
func (tx *Tx) Attach(w Attach) (Attachment, error) {
	a := tx.a
	n, m, err := a.mayAttach(w)
	if err != nil {
		return Attachment{}, err
	}
	if w.Index, err = a.place(m, w); err != nil {
		return Attachment{}, err
	}
	at := Attachment{ID: a.id("eni-attach"), Instance: m.ID, Index: w.Index, Card: w.Card, Status: Attaching,
		Time: a.now.Round(0).UTC(), DeleteOnTermination: w.DeleteOnTermination}
	n.Status, n.Attachment = Attaching, &at
	a.takePlace(m, n)
	a.changed(n)
	d := a.o.AttachTime + tx.fault.Slow
	if d <= 0 {
		if err := a.on(n); err != nil {
			return Attachment{}, fail(Unavailable, n.ID, "%v", err)
		}
		return *n.Attachment, nil
	}
	a.later(d, happening{What: arrives, ENI: n.ID, Attachment: at.ID}, func() { a.arrive(n, at.ID) })
	return at, nil
}

// arrive ends an attaching that nobody waits for.
func (a *Account) arrive(n *nic, attachment string) {
	if n.Attachment == nil || n.Attachment.ID != attachment || n.Attachment.Status != Attaching {
		return
	}
	if err := a.on(n); err != nil {
		a.broken = append(a.broken, err)
	}
}

// mayAttach finds the ENI and the instance, and tells why they don't fit.
func (a *Account) mayAttach(w Attach) (*nic, *machine, error) {
	n, err := a.nic(w.Interface)
	if err != nil {
		return nil, nil, err
	}
	m := a.machines[w.Instance]
	switch {
	case m == nil || m.Terminated:
		return nil, nil, fail(NoSuchInstance, w.Instance, "")
	case n.Attachment != nil:
		return nil, nil, fail(AlreadyAttached, n.ID, "")
	case n.Status != Available:
		return nil, nil, fail(IncorrectState, n.ID, "it is %s", n.Status)
	case a.subnets[m.Subnet].Zone != n.Zone:
		return nil, nil, fail(WrongZone, n.ID, "")
	}
	t := a.types[m.Type]
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if limit := t.slots(f, w.Index); n.Slots(f) > limit && !a.lifted {
			return nil, nil, fail(AddressLimit, n.ID, "it may have %d of %s on this instance", limit, f)
		}
	}
	if t.NoPrefix && len(n.Prefixes) > 0 {
		return nil, nil, fail(NotSupported, n.ID, "the instance's type has no prefixes")
	}
	return n, m, nil
}

// place returns the index for an ENI on the instance.
func (a *Account) place(m *machine, w Attach) (int, error) {
	t := a.types[m.Type]
	cards := t.Cards
	if len(cards) == 0 {
		cards = []int{t.ENIs}
	}
	if w.Card < 0 || w.Card >= len(cards) {
		return 0, fail(Invalid, m.ID, "it has no network card %d", w.Card)
	}
	taken := map[int]bool{}
	for _, n := range m.nics {
		if n.Attachment.Card == w.Card {
			taken[n.Attachment.Index] = true
		}
	}
	if !a.lifted && (len(m.nics) >= t.ENIs || len(taken) >= cards[w.Card]) {
		return 0, fail(AttachmentLimit, m.ID, "its type %s may have %d", t.Name, t.ENIs)
	}
	if w.Index < 0 {
		for w.Index = 0; taken[w.Index]; w.Index++ {
		}
	}
	switch {
	case taken[w.Index]:
		return 0, fail(IndexInUse, m.ID, "index %d", w.Index)
	case w.Index > eni.MaxIndex, w.Card > 0 && w.Index >= cards[w.Card] && !a.lifted:
		return 0, fail(Invalid, m.ID, "index %d", w.Index)
	}
	return w.Index, nil
}

// on ends the attaching of an ENI; if it can't be done the ENI is available again.
func (a *Account) on(n *nic) error {
	m := a.machineOf(n)
	if err := a.plug(m, n); err != nil {
		a.leave(n)
		return err
	}
	at := *n.Attachment
	at.Status = Attached
	n.Status, n.Attachment = InUse, &at
	a.changed(n)
	return nil
}

// Detach begins to detach the ENI of an attachment; its link is gone at once.
func (tx *Tx) Detach(attachment string, force bool) (Attachment, error) {
	a := tx.a
	n := a.places[attachment]
	switch {
	case n == nil:
		return Attachment{}, fail(NoSuchAttachment, attachment, "")
	case n.Attachment.Index == 0 && n.Attachment.Card == 0:
		return Attachment{}, fail(PrimaryInterface, n.ID, "it stays as long as the instance")
	case n.Attachment.Status != Attached && !force:
		return Attachment{}, fail(IncorrectState, attachment, "it is %s", n.Attachment.Status)
	}
	if err := a.unplug(n); err != nil {
		return Attachment{}, fail(Unavailable, n.ID, "%v", err)
	}
	at := *n.Attachment
	at.Status = Detaching
	n.Status, n.Attachment = Detaching, &at
	a.changed(n)
	a.later(a.o.DetachTime+tx.fault.Slow, happening{What: leaves, ENI: n.ID, Attachment: at.ID}, func() { a.departed(n, at.ID) })
	return at, nil
}

// departed ends a detaching.
func (a *Account) departed(n *nic, attachment string) {
	if n.Attachment != nil && n.Attachment.ID == attachment {
		a.leave(n)
	}
}

// off takes an ENI from its instance, whatever it is doing.
func (a *Account) off(n *nic) error {
	if err := a.unplug(n); err != nil {
		return err
	}
	a.leave(n)
	return nil
}

// leave makes an ENI that has no link any more available.
func (a *Account) leave(n *nic) {
	m := a.machineOf(n)
	m.nics = drop(m.nics, n)
	delete(a.places, n.Attachment.ID)
	n.Status, n.Attachment = Available, nil
	a.changed(n)
}

// machineOf returns the instance that the ENI is on or on its way to, nil if none.
func (a *Account) machineOf(n *nic) *machine {
	if n.Attachment == nil {
		return nil
	}
	return a.machines[n.Attachment.Instance]
}

// Detach takes an ENI off its instance at once, behind the instance's back. It
// stays in the account, with its addresses.
func (a *Account) Detach(id string) error {
	a.lock()
	defer a.mu.Unlock()
	n, err := a.nic(id)
	if err == nil && (n.Attachment == nil || n.Attachment.Index == 0 && n.Attachment.Card == 0) {
		err = fail(IncorrectState, id, "it is a node's own, or not attached")
	}
	if err != nil {
		return fmt.Errorf("detach ENI %s: %w", id, err)
	}
	return a.off(n)
}

// Move is Detach, and begins to attach the ENI to another instance.
func (a *Account) Move(id, to string) error {
	if err := a.Detach(id); err != nil {
		return err
	}
	return a.Update(func(tx *Tx) error {
		_, err := tx.Attach(Attach{Interface: id, Instance: to, Index: -1})
		return err
	})
}
