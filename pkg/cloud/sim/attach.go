package sim

import (
	"fmt"

	"github.com/enipool/enipool/pkg/eni"
)

// Attach says where an ENI is to be attached.
type Attach struct {
	Interface, Instance string
	Index               int // -1 is the lowest free one of the card
	Card                int
	DeleteOnTermination bool
}

// Attach begins to attach an ENI. If that takes no time, it is attached when Attach returns.
func (tx *Tx) Attach(w Attach) (Attachment, error) {
	account := tx.a
	nic, m, err := account.mayAttach(w)
	if err != nil {
		return Attachment{}, err
	}
	if w.Index, err = account.choosePlace(m, w); err != nil {
		return Attachment{}, err
	}
	at := Attachment{ID: account.newID("eni-attach"), Instance: m.ID, Index: w.Index, Card: w.Card, Status: Attaching,
		Time: account.now.Round(0).UTC(), DeleteOnTermination: w.DeleteOnTermination}
	nic.Status, nic.Attachment = Attaching, &at
	account.takePlace(m, nic)
	account.noteChanged(nic)
	// At once, a failure of the Network is this call's; later it is nobody's, and Check reports it.
	d := account.o.AttachTime + tx.fault.Slow
	if d <= 0 {
		if err := account.completeAttach(nic); err != nil {
			return Attachment{}, fail(Unavailable, nic.ID, "%v", err)
		}
		return *nic.Attachment, nil
	}
	account.scheduleIn(d, happening{What: arrives, ENI: nic.ID, Attachment: at.ID}, func() { account.finishAttaching(nic, at.ID) })
	return at, nil
}

// finishAttaching ends an attaching whose call has returned, unless the ENI was detached meanwhile.
func (a *Account) finishAttaching(n *nic, attachment string) {
	if n.Attachment == nil || n.Attachment.ID != attachment || n.Attachment.Status != Attaching {
		return
	}
	if err := a.completeAttach(n); err != nil {
		a.broken = append(a.broken, err)
	}
}

// mayAttach finds the ENI and the instance, or tells why the one can't be attached to the other.
func (a *Account) mayAttach(asked Attach) (*nic, *vm, error) {
	nic, err := a.findNIC(asked.Interface)
	if err != nil {
		return nil, nil, err
	}
	host := a.vms[asked.Instance]
	switch {
	case host == nil || host.Terminated:
		return nil, nil, fail(NoSuchInstance, asked.Instance, "")
	case nic.Attachment != nil:
		return nil, nil, fail(AlreadyAttached, nic.ID, "")
	case nic.Status != Available:
		return nil, nil, fail(IncorrectState, nic.ID, "it is %s", nic.Status)
	case a.subnets[host.Subnet].Zone != nic.Zone:
		return nil, nil, fail(WrongZone, nic.ID, "")
	}
	// An ENI may have been filled before, as on EC2: what it has must fit the instance's type.
	t := a.types[host.Type]
	for _, f := range []eni.Family{eni.IPv4, eni.IPv6} {
		if limit := t.slots(f, asked.Index); nic.Slots(f) > limit && !a.lifted {
			return nil, nil, fail(AddressLimit, nic.ID, "it may have %d of %s on this instance", limit, f)
		}
	}
	if t.NoPrefix && len(nic.Prefixes) > 0 {
		return nil, nil, fail(NotSupported, nic.ID, "the instance's type has no prefixes")
	}
	return nic, host, nil
}

// choosePlace returns the device index for an ENI on the instance.
func (a *Account) choosePlace(host *vm, asked Attach) (int, error) {
	itype := a.types[host.Type]
	cards := itype.Cards
	if len(cards) == 0 {
		cards = []int{itype.ENIs}
	}
	if asked.Card < 0 || asked.Card >= len(cards) {
		return 0, fail(Invalid, host.ID, "it has no network card %d", asked.Card)
	}
	taken := map[int]bool{}
	for _, n := range host.nics {
		if n.Attachment.Card == asked.Card {
			taken[n.Attachment.Index] = true
		}
	}
	if !a.lifted && (len(host.nics) >= itype.ENIs || len(taken) >= cards[asked.Card]) {
		return 0, fail(AttachmentLimit, host.ID, "its type %s may have %d", itype.Name, itype.ENIs)
	}
	if asked.Index < 0 {
		for asked.Index = 0; taken[asked.Index]; asked.Index++ {
		}
	}
	// On the first card an index may be beyond the number of ENIs, as on EC2; not on further ones.
	switch {
	case taken[asked.Index]:
		return 0, fail(IndexInUse, host.ID, "index %d", asked.Index)
	case asked.Index > eni.MaxIndex, asked.Card > 0 && asked.Index >= cards[asked.Card] && !a.lifted:
		return 0, fail(Invalid, host.ID, "index %d", asked.Index)
	}
	return asked.Index, nil
}

// completeAttach makes the ENI's link and marks it attached. If the link can't be made, the ENI is
// available again.
func (a *Account) completeAttach(n *nic) error {
	m := a.vmOf(n)
	if err := a.attachLink(m, n); err != nil {
		a.makeAvailable(n)
		return err
	}
	at := *n.Attachment
	at.Status = Attached
	n.Status, n.Attachment = InUse, &at
	a.noteChanged(n)
	return nil
}

// Detach begins to detach the ENI of an attachment. Its link is gone at once, its place only when
// the ENI is detached.
func (tx *Tx) Detach(attachment string, force bool) (Attachment, error) {
	account := tx.a
	nic := account.places[attachment]
	switch {
	case nic == nil:
		return Attachment{}, fail(NoSuchAttachment, attachment, "")
	case nic.Attachment.Index == 0 && nic.Attachment.Card == 0:
		return Attachment{}, fail(PrimaryInterface, nic.ID, "it stays as long as the instance")
	case nic.Attachment.Status != Attached && !force:
		return Attachment{}, fail(IncorrectState, attachment, "it is %s", nic.Attachment.Status)
	}
	if err := account.detachLink(nic); err != nil {
		return Attachment{}, fail(Unavailable, nic.ID, "%v", err)
	}
	at := *nic.Attachment
	at.Status = Detaching
	nic.Status, nic.Attachment = Detaching, &at
	account.noteChanged(nic)
	account.scheduleIn(account.o.DetachTime+tx.fault.Slow, happening{What: leaves, ENI: nic.ID, Attachment: at.ID}, func() { account.finishDetaching(nic, at.ID) })
	return at, nil
}

// finishDetaching ends a detaching whose call has returned.
func (a *Account) finishDetaching(n *nic, attachment string) {
	if n.Attachment != nil && n.Attachment.ID == attachment {
		a.makeAvailable(n)
	}
}

// detachNow takes an ENI from its instance at once, whatever its state.
func (a *Account) detachNow(n *nic) error {
	if err := a.detachLink(n); err != nil {
		return err
	}
	a.makeAvailable(n)
	return nil
}

// makeAvailable ends the attachment of an ENI that no longer has a link.
func (a *Account) makeAvailable(n *nic) {
	m := a.vmOf(n)
	m.nics = dropNIC(m.nics, n)
	delete(a.places, n.Attachment.ID)
	n.Status, n.Attachment = Available, nil
	a.noteChanged(n)
}

// vmOf returns the instance that the ENI is on or on its way to, nil if none.
func (a *Account) vmOf(n *nic) *vm {
	if n.Attachment == nil {
		return nil
	}
	return a.vms[n.Attachment.Instance]
}

// Detach takes an ENI off its instance at once, behind the instance's back. It
// stays in the account, with its addresses.
func (a *Account) Detach(id string) error {
	a.lock()
	defer a.mu.Unlock()
	n, err := a.findNIC(id)
	if err == nil && (n.Attachment == nil || n.Attachment.Index == 0 && n.Attachment.Card == 0) {
		err = fail(IncorrectState, id, "it is a node's own, or not attached")
	}
	if err != nil {
		return fmt.Errorf("detach ENI %s: %w", id, err)
	}
	return a.detachNow(n)
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
