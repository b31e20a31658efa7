package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnENIIsMadeWithWhatWasWished(t *testing.T) {
	a := newTestAccount(t, Options{Clock: newClock()})
	got := makeENI(t, a, Create{Subnet: "a", Name: "n", Description: "d", Groups: []string{"g2"}, Tags: map[string]string{"k": "v"},
		Primary:        netip.MustParseAddr("10.0.0.40"),
		AddressRequest: AddressRequest{V4: addrs("10.0.0.41"), CountV4: 1, V6: addrs("fd00::99"), CountV6: 1, BlocksV4: 1, BlocksV6: 1}})
	want := Interface{ID: got.ID, Name: "n", Description: "d", Subnet: "a", Zone: "region-1a", MAC: got.MAC, Groups: []string{"g2"},
		Tags: map[string]string{"k": "v"}, Status: Available, Created: got.Created, Primary: netip.MustParseAddr("10.0.0.40"),
		V4: addrs("10.0.0.41", "10.0.0.5"), V6: addrs("fd00::99", "fd00::4"), Prefixes: prefixes("10.0.0.16/28", "fd00:0:0:0:fffe::/80")}
	if diff := cmp.Diff(want, got, plain...); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := freeOf(t, a, "a"); n != 59-1-3-16 {
		t.Errorf("%d are free", n)
	}
}

func TestWhatCantBeMadeLeavesNothing(t *testing.T) {
	a := newTestAccount(t, Options{MaxENIs: 3})
	room := freeOf(t, a, "a")
	for _, tt := range []struct {
		name string
		c    Create
		want Reason
	}{
		{"no such subnet", Create{Subnet: "none"}, NoSuchSubnet},
		{"no such group", Create{Subnet: "a", Groups: []string{"none"}}, NoSuchGroup},
		{"groups of two kinds", Create{Subnet: "a", Groups: []string{"g1", "e1"}}, Invalid},
		{"a group twice", Create{Subnet: "a", Groups: []string{"g1", "g1"}}, Invalid},
		{"more than the subnet has", Create{Subnet: "b", AddressRequest: AddressRequest{CountV4: 11}}, SubnetFull},
		{"more than an ENI may have", Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 50}}, AddressLimit},
		{"a reserved address", Create{Subnet: "a", Primary: netip.MustParseAddr("10.0.0.3")}, ReservedAddress},
		{"the last address", Create{Subnet: "a", AddressRequest: AddressRequest{V4: addrs("10.0.0.63")}}, ReservedAddress},
		{"another subnet's address", Create{Subnet: "a", AddressRequest: AddressRequest{V4: addrs("10.0.1.5")}}, OutsideSubnet},
		{"another ENI's address", Create{Subnet: "a", AddressRequest: AddressRequest{V4: addrs("10.0.0.4")}}, AddressInUse},
		{"a block with reserved addresses", Create{Subnet: "a", AddressRequest: AddressRequest{Prefixes: prefixes("10.0.0.48/28")}}, AddressInUse},
		{"a block that is not aligned", Create{Subnet: "a", AddressRequest: AddressRequest{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.17/28")}}}, Invalid},
		{"a block of another size", Create{Subnet: "a", AddressRequest: AddressRequest{Prefixes: prefixes("10.0.0.16/29")}}, Invalid},
		{"a block of another subnet", Create{Subnet: "a", AddressRequest: AddressRequest{Prefixes: prefixes("10.0.9.16/28")}}, OutsideSubnet},
		{"more blocks than there are", Create{Subnet: "a", AddressRequest: AddressRequest{BlocksV4: 3}}, NoBlock},
		{"IPv6 in a subnet without", Create{Subnet: "b", AddressRequest: AddressRequest{CountV6: 1}}, NotSupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := act(t, a, Call{Action: "Create"}, func(tx *Tx) (Interface, error) { return tx.Create(tt.c) })
			wantReason(t, err, tt.want)
			if n := freeOf(t, a, "a"); n != room {
				t.Errorf("%d addresses are free, before %d", n, room)
			}
		})
	}
	for range 2 {
		makeENI(t, a, Create{Subnet: "a"})
	}
	_, _, err := act(t, a, Call{Action: "Create"}, func(tx *Tx) (Interface, error) { return tx.Create(Create{Subnet: "a"}) })
	wantReason(t, err, InterfaceLimit)
}

func TestAttachingHasItsRules(t *testing.T) {
	a := newTestAccount(t, Options{})
	for _, i := range []Instance{{ID: "old", Type: "old", Subnet: "a"}, {ID: "cards", Type: "cards", Subnet: "a"}, {ID: "gone", Type: "small", Subnet: "a"}} {
		_, err := a.AddInstance(i)
		must(t, err)
	}
	must(t, a.Terminate("gone"))
	one, two, three, four := makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a"})
	many := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 6}})
	block := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{BlocksV4: 1}})
	far := makeENI(t, a, Create{Subnet: "z"})
	for _, tt := range []struct {
		name string
		w    Attach
		want Reason
	}{
		{"no such ENI", Attach{Interface: "none", Instance: "i", Index: 1}, NoSuchInterface},
		{"no such instance", Attach{Interface: one.ID, Instance: "none", Index: 1}, NoSuchInstance},
		{"a terminated instance", Attach{Interface: one.ID, Instance: "gone", Index: 1}, NoSuchInstance},
		{"another zone", Attach{Interface: far.ID, Instance: "i", Index: 1}, WrongZone},
		{"the index of the instance's own", Attach{Interface: one.ID, Instance: "i", Index: 0}, IndexInUse},
		{"no such card", Attach{Interface: one.ID, Instance: "i", Index: 1, Card: 1}, Invalid},
		{"more addresses than the type carries", Attach{Interface: many.ID, Instance: "i", Index: 1}, AddressLimit},
		{"prefixes on a type without", Attach{Interface: block.ID, Instance: "old", Index: 1}, NotSupported},
		{"the first", Attach{Interface: one.ID, Instance: "i", Index: 2}, ""},
		{"the same again", Attach{Interface: one.ID, Instance: "i", Index: 1}, AlreadyAttached},
		{"the index of the first", Attach{Interface: two.ID, Instance: "i", Index: 2}, IndexInUse},
		{"an index so high", Attach{Interface: two.ID, Instance: "i", Index: 9999}, Invalid},
		{"the lowest free index", Attach{Interface: two.ID, Instance: "i", Index: -1}, ""},
		{"one too many", Attach{Interface: three.ID, Instance: "i", Index: 3}, AttachmentLimit},
		{"on the first card", Attach{Interface: four.ID, Instance: "cards", Index: 1}, ""},
		{"one too many of the first card", Attach{Interface: block.ID, Instance: "cards", Index: 2}, AttachmentLimit},
		{"the same index on another card", Attach{Interface: three.ID, Instance: "cards", Index: 0, Card: 1}, ""},
		{"one too many of all cards", Attach{Interface: block.ID, Instance: "cards", Index: 1, Card: 1}, AttachmentLimit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := attachENI(t, a, tt.w)
			wantReason(t, err, tt.want)
		})
	}
	if i, _ := truthOf(t, a, two.ID); i.Attachment.Index != 1 {
		t.Errorf("the lowest free index is %d", i.Attachment.Index)
	}
}

func TestAssigningHasItsRules(t *testing.T) {
	a := newTestAccount(t, Options{})
	_, err := a.AddInstance(Instance{ID: "old", Type: "old", Subnet: "a"})
	must(t, err)
	one, two, old := makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 1}}), makeENI(t, a, Create{Subnet: "a"})
	for _, w := range []Attach{{Interface: one.ID, Instance: "i", Index: 1}, {Interface: old.ID, Instance: "old", Index: 1}} {
		_, err := attachENI(t, a, w)
		must(t, err)
	}
	for _, tt := range []struct {
		name string
		eni  string
		w    AddressRequest
		want Reason
	}{
		{"no such ENI", "none", AddressRequest{CountV4: 1}, NoSuchInterface},
		{"IPv6 on a type without", old.ID, AddressRequest{CountV6: 1}, NotSupported},
		{"prefixes on a type without", old.ID, AddressRequest{BlocksV4: 1}, NotSupported},
		{"one too many", one.ID, AddressRequest{CountV4: 6}, AddressLimit},
		{"a prefix takes one slot", one.ID, AddressRequest{CountV4: 5, BlocksV4: 1}, AddressLimit},
		{"another's address", one.ID, AddressRequest{V4: two.V4}, AddressInUse},
		{"another's primary, to be taken away", one.ID, AddressRequest{V4: []netip.Addr{two.Primary}, Reassign: true}, AddressInUse},
		{"its own primary", one.ID, AddressRequest{V4: []netip.Addr{one.Primary}}, AddressInUse},
		{"as many as it may", one.ID, AddressRequest{CountV4: 4, BlocksV4: 1}, ""},
		{"one more", one.ID, AddressRequest{CountV4: 1}, AddressLimit},
		{"IPv6 counts for itself", one.ID, AddressRequest{CountV6: 5, BlocksV6: 1}, ""},
		{"one more of IPv6", one.ID, AddressRequest{BlocksV6: 1}, AddressLimit},
		{"more blocks than there are", two.ID, AddressRequest{BlocksV4: 2}, NoBlock},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := freeOf(t, a, "a")
			got, err := give(t, a, tt.eni, tt.w)
			wantReason(t, err, tt.want)
			if err != nil && (len(got.V4)+len(got.V6)+len(got.Prefixes) > 0 || freeOf(t, a, "a") != before) {
				t.Errorf("it got %v in spite of %v", got, err)
			}
		})
	}
}

func TestAnAddressMovesWhereThatIsAskedFor(t *testing.T) {
	a := newTestAccount(t, Options{})
	one, two := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2}}), makeENI(t, a, Create{Subnet: "a"})
	got, err := give(t, a, two.ID, AddressRequest{V4: one.V4[:1], Reassign: true})
	must(t, err)
	if diff := cmp.Diff(Got{V4: one.V4[:1]}, got, plain...); diff != "" {
		t.Error(diff)
	}
	if i, _ := truthOf(t, a, one.ID); len(i.V4) != 1 || i.V4[0] != one.V4[1] {
		t.Errorf("the first has %v", i.V4)
	}
	again, err := give(t, a, two.ID, AddressRequest{V4: one.V4[:1]})
	must(t, err)
	if i, _ := truthOf(t, a, two.ID); len(again.V4) != 1 || len(i.V4) != 1 {
		t.Errorf("assigned again it has %v", i.V4)
	}
}

func TestUnassigningTakesAllOrNothing(t *testing.T) {
	a := newTestAccount(t, Options{})
	one := makeENI(t, a, Create{Subnet: "a", AddressRequest: AddressRequest{CountV4: 2, BlocksV4: 1, CountV6: 1}})
	wantReason(t, takeBack(t, a, "none", Got{V4: one.V4}), NoSuchInterface)
	wantReason(t, takeBack(t, a, one.ID, Got{V4: append(one.V4[:1:1], one.Primary)}), PrimaryAddress)
	wantReason(t, takeBack(t, a, one.ID, Got{V4: append(one.V4[:1:1], netip.MustParseAddr("10.0.0.60"))}), NoSuchAddress)
	wantReason(t, takeBack(t, a, one.ID, Got{Prefixes: prefixes("10.0.0.16/28")}), NoSuchAddress)
	if i, _ := truthOf(t, a, one.ID); len(i.V4) != 2 || len(i.Prefixes) != 1 {
		t.Fatalf("it lost something: %+v", i)
	}
	must(t, takeBack(t, a, one.ID, Got{V4: one.V4, V6: one.V6, Prefixes: one.Prefixes}))
	if i, _ := truthOf(t, a, one.ID); len(i.V4)+len(i.V6)+len(i.Prefixes) != 0 || freeOf(t, a, "a") != 59-2 {
		t.Errorf("it still has %+v", i)
	}
}

func TestStatesTakeTheirTime(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock, CreateTime: time.Second, AttachTime: 2 * time.Second, DetachTime: 3 * time.Second})
	one := makeENI(t, a, Create{Subnet: "a"})
	status := func(want Status) {
		t.Helper()
		if i, _ := truthOf(t, a, one.ID); i.Status != want {
			t.Fatalf("status %s, want %s", i.Status, want)
		}
	}
	status(Pending)
	_, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	wantReason(t, err, IncorrectState)
	clock.now = clock.now.Add(time.Second)
	status(Available)
	at, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	status(Attaching)
	wantReason(t, detachENI(t, a, at.ID), IncorrectState)
	wantReason(t, removeENI(t, a, one.ID), InterfaceInUse)
	clock.now = clock.now.Add(2 * time.Second)
	status(InUse)
	must(t, detachENI(t, a, at.ID))
	status(Detaching)
	wantReason(t, detachENI(t, a, at.ID), IncorrectState)
	wantReason(t, removeENI(t, a, one.ID), InterfaceInUse)
	clock.now = clock.now.Add(3 * time.Second)
	status(Available)
	wantReason(t, detachENI(t, a, at.ID), NoSuchAttachment)
	must(t, removeENI(t, a, one.ID))
	wantReason(t, removeENI(t, a, one.ID), NoSuchInterface)
}

func TestAnAttachmentThatWasCutShortDoesNotEndTheNextOne(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock, AttachTime: time.Second})
	one := makeENI(t, a, Create{Subnet: "a"})
	first, err := attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	clock.now = clock.now.Add(500 * time.Millisecond)
	must(t, a.Update(func(tx *Tx) error { _, err := tx.Detach(first.ID, true); return err }))
	_, err = attachENI(t, a, Attach{Interface: one.ID, Instance: "i", Index: 1})
	must(t, err)
	clock.now = clock.now.Add(500 * time.Millisecond)
	if i, _ := truthOf(t, a, one.ID); i.Status != Attaching {
		t.Errorf("when the first would have been through it is %s", i.Status)
	}
	clock.now = clock.now.Add(500 * time.Millisecond)
	if i, _ := truthOf(t, a, one.ID); i.Status != InUse {
		t.Errorf("in the end it is %s", i.Status)
	}
}

func TestTheInstancesOwnENIStays(t *testing.T) {
	a := newTestAccount(t, Options{})
	var own Interface
	a.View(0, func(tx *Tx) { own = tx.Interfaces()[0] })
	wantReason(t, detachENI(t, a, own.Attachment.ID), PrimaryInterface)
	wantReason(t, a.Detach(own.ID), IncorrectState)
	wantReason(t, removeENI(t, a, own.ID), InterfaceInUse)
}

func TestATerminatedInstanceTakesItsENIsAlong(t *testing.T) {
	a := newTestAccount(t, Options{})
	goes, stays := makeENI(t, a, Create{Subnet: "a"}), makeENI(t, a, Create{Subnet: "a"})
	at, err := attachENI(t, a, Attach{Interface: goes.ID, Instance: "i", Index: 1})
	must(t, err)
	_, err = attachENI(t, a, Attach{Interface: stays.ID, Instance: "i", Index: 2})
	must(t, err)
	yes := true
	must(t, a.Update(func(tx *Tx) error {
		return tx.Modify(goes.ID, Edit{Attachment: at.ID, DeleteOnTermination: &yes})
	}))
	must(t, a.Terminate("i"))
	if _, ok := truthOf(t, a, goes.ID); ok {
		t.Error("the ENI that was to go is still there")
	}
	if i, ok := truthOf(t, a, stays.ID); !ok || i.Status != Available {
		t.Errorf("the other one is %+v", i)
	}
	if n := freeOf(t, a, "a"); n != 58 {
		t.Errorf("%d are free", n)
	}
	wantReason(t, a.Terminate("i"), NoSuchInstance)
}

func TestASubnetIsFilledAndFragmentedByOthers(t *testing.T) {
	a := newTestAccount(t, Options{})
	one := makeENI(t, a, Create{Subnet: "a"})
	must(t, a.Fragment("a", true))
	if n := freeOf(t, a, "a"); n != 57 {
		t.Errorf("%d are free", n)
	}
	_, err := give(t, a, one.ID, AddressRequest{BlocksV4: 1})
	wantReason(t, err, NoBlock)
	_, err = give(t, a, one.ID, AddressRequest{CountV4: 3})
	must(t, err)
	must(t, a.LeaveFree("a", 2))
	if n := freeOf(t, a, "a"); n != 2 {
		t.Errorf("%d are free, want 2", n)
	}
	_, err = give(t, a, one.ID, AddressRequest{CountV4: 3})
	wantReason(t, err, SubnetFull)
	_, err = give(t, a, one.ID, AddressRequest{CountV4: 2})
	must(t, err)
	_, err = give(t, a, one.ID, AddressRequest{CountV6: 1})
	must(t, err) // two are left of IPv6 too
	must(t, a.LeaveFree("a", 0))
	_, err = give(t, a, one.ID, AddressRequest{CountV6: 1})
	wantReason(t, err, SubnetFull)
	must(t, a.LeaveFree("a", 1000))
	if n := freeOf(t, a, "a"); n != 57-5 {
		t.Errorf("%d are free when the others have left", n)
	}
	wantReason(t, a.LeaveFree("none", 0), NoSuchSubnet)
}

func TestReserveIsTheClouds(t *testing.T) {
	a := NewAccount(Options{})
	must(t, a.AddSubnet(Subnet{ID: "s", V4: netip.MustParsePrefix("10.1.0.0/28"),
		Reserved: addrs("10.1.0.9"), Reserve: Reserve{First: 2, Last: 1}}))
	if n := freeOf(t, a, "s"); n != 16-4 {
		t.Errorf("%d are free, want 12", n)
	}
	if got := makeENI(t, a, Create{Subnet: "s"}); got.Primary != netip.MustParseAddr("10.1.0.2") {
		t.Errorf("the first address is %s", got.Primary)
	}
}

func TestSetUpRefusesWhatDoesNotFit(t *testing.T) {
	a := newTestAccount(t, Options{})
	for name, s := range map[string]Subnet{
		"the same id": {ID: "a", V4: netip.MustParsePrefix("10.9.0.0/24")},
		"an overlap":  {ID: "x", V4: netip.MustParsePrefix("10.0.0.0/16")},
		"no range":    {ID: "x"},
		"a host":      {ID: "x", V4: netip.MustParsePrefix("10.9.0.1/24")},
		"a family":    {ID: "x", V4: netip.MustParsePrefix("fd01::/64")},
	} {
		if err := a.AddSubnet(s); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, i := range map[string]Instance{
		"the same id": {ID: "i", Type: "small", Subnet: "a"},
		"no type":     {ID: "x", Type: "none", Subnet: "a"},
		"no subnet":   {ID: "x", Type: "small", Subnet: "none"},
	} {
		if _, err := a.AddInstance(i); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAnENIIsModifiedAndTagged(t *testing.T) {
	a := newTestAccount(t, Options{})
	one := makeENI(t, a, Create{Subnet: "a", Tags: map[string]string{"a": "1", "b": "2"}})
	text, off := "new", true
	must(t, a.Update(func(tx *Tx) error {
		return tx.Modify(one.ID, Edit{Name: &text, Description: &text, Groups: []string{"g2"}, NoSourceCheck: &off})
	}))
	wantReason(t, a.Update(func(tx *Tx) error { return tx.Modify(one.ID, Edit{Groups: []string{"none"}}) }), NoSuchGroup)
	wantReason(t, a.Update(func(tx *Tx) error { return tx.Modify(one.ID, Edit{DeleteOnTermination: &off}) }), NoSuchAttachment)
	two := "2"
	must(t, a.Update(func(tx *Tx) error { return tx.Tag([]string{one.ID, "a", "i"}, map[string]string{"c": "3"}) }))
	must(t, a.Update(func(tx *Tx) error {
		return tx.Untag([]string{one.ID}, map[string]*string{"a": nil, "b": &two, "c": &two})
	}))
	wantReason(t, a.Update(func(tx *Tx) error { return tx.Tag([]string{one.ID, "none"}, map[string]string{"d": "4"}) }), NoSuchResource)
	i, _ := truthOf(t, a, one.ID)
	if diff := cmp.Diff(map[string]string{"c": "3"}, i.Tags); diff != "" || i.Name != "new" || i.Description != "new" || i.Groups[0] != "g2" || !i.NoSourceCheck {
		t.Errorf("it is %+v: %s", i, diff)
	}
	many := map[string]string{}
	for n := range 51 {
		many[time.Duration(n).String()] = ""
	}
	wantReason(t, a.Update(func(tx *Tx) error { return tx.Tag([]string{one.ID}, many) }), TagLimit)
	if len(one.Tags) != 2 {
		t.Errorf("what was shown before has changed: %v", one.Tags)
	}
}
