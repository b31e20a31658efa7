package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// ids are the ENIs of an instance, and those on none with its tag, as of some time ago.
func ids(a *Account, age time.Duration) (list []string) {
	a.View(age, func(tx *Tx) {
		for _, i := range tx.InterfacesOf("i", "for", "i") {
			list = append(list, i.ID)
		}
	})
	return list
}

func TestTheENIsOfAnInstanceAreFoundAsTheyAreAndAsTheyWere(t *testing.T) {
	clock := newClock()
	a := newTestAccount(t, Options{Clock: clock, Lag: time.Minute})
	_, err := a.AddInstance(Instance{ID: "other", Type: "small", Subnet: "a"})
	must(t, err)
	next := func() { clock.now = clock.now.Add(time.Second) }
	own := ids(a, 0)
	if len(own) != 1 {
		t.Fatalf("at first there are %v", own)
	}
	next()
	made := makeENI(t, a, Create{Subnet: "a", Tags: map[string]string{"for": "i"}})
	makeENI(t, a, Create{Subnet: "a", Tags: map[string]string{"for": "other"}})
	next()
	at, err := attachENI(t, a, Attach{Interface: made.ID, Instance: "other", Index: 1})
	must(t, err)
	next()
	must(t, detachENI(t, a, at.ID))
	must(t, a.Update(func(tx *Tx) error { return tx.Untag([]string{made.ID}, nil) }))
	next()
	_, err = attachENI(t, a, Attach{Interface: made.ID, Instance: "i", Index: 1})
	must(t, err)
	next()
	must(t, a.Detach(made.ID))
	must(t, removeENI(t, a, made.ID))
	both := append(slices.Clone(own), made.ID)
	for ago, want := range [][]string{own, both, own, own, both, own} {
		if got := ids(a, time.Duration(ago)*time.Second); !slices.Equal(got, want) {
			t.Errorf("%d seconds ago there were %v, want %v", ago, got, want)
		}
	}
}

func TestWhatWasDeletedIsForgottenWhenNobodyMayAskForIt(t *testing.T) {
	for _, keep := range []time.Duration{0, time.Minute} {
		clock := newClock()
		a := newTestAccount(t, Options{Clock: clock, Lag: keep})
		for n := range 20 {
			clock.now = clock.now.Add(10 * time.Second)
			i := makeENI(t, a, Create{Subnet: "a", Tags: map[string]string{"for": fmt.Sprint(n)}})
			_, err := attachENI(t, a, Attach{Interface: i.ID, Instance: "i", Index: 1})
			must(t, err)
			must(t, a.Detach(i.ID))
			must(t, removeENI(t, a, i.ID))
		}
		remembered := int(keep / (10 * time.Second))
		if len(a.dead) != remembered || len(a.nics) != 1+remembered || len(a.tagged) != remembered ||
			len(a.vms["i"].had) != 1+remembered || len(a.places) != 1 {
			t.Errorf("with a lag of %s it knows %d deleted ENIs, %d in all, %d tags, %d of the instance, %d places", keep,
				len(a.dead), len(a.nics), len(a.tagged), len(a.vms["i"].had), len(a.places))
		}
	}
}
