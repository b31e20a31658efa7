package claims

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/topology"
)

// A read that is older than what was known when it was asked for is of a store that was put back. One that the watch has overtaken is not.
func TestAReadTellsAStoreThatWasPutBackFromALateWatch(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.9")
	k := knownWith(t, Event{Claim: claimOf("a", "10", "Free")})
	asked := k.Ask(at)
	if err := k.Take(Event{Claim: claimOf("a", "12", "Bound")}); err != nil {
		t.Fatal(err)
	}
	if err := k.TakeRead(claimOf("a", "11", "Free"), asked); err != nil || k.claims[at].Phase != topology.Bound {
		t.Errorf("the watch was faster: %v, %+v", err, k.claims[at].Status)
	}
	moving := claimOf("a", "20", "Moving")
	moving.Status.ToInterface = "eni-2"
	if err := k.Take(Event{Claim: moving}); err != nil {
		t.Fatal(err)
	}
	before := claimOf("a", "11", "Free")
	if asked = k.Ask(at); !k.IsBehind(before) || k.IsBehind(moving) {
		t.Error("which copy is older is not told")
	}
	if err := k.TakeRead(before, asked); err != nil || k.Object(at) != before || k.claims[at].ToENI != "eni-2" {
		t.Errorf("it was put back: %v, %+v", err, k.claims[at].Status)
	}
}

// An object that has gone is there again when a read shows it that was asked for after that. An older one says nothing.
func TestAClaimThatHasGoneIsThereAgainByARead(t *testing.T) {
	at, is := netip.MustParseAddr("10.0.0.9"), claimOf("a", "10", "Free")
	k := knownWith(t, Event{Claim: is})
	early := k.Ask(at)
	if err := k.Take(Event{Claim: is, Deleted: true}); err != nil {
		t.Fatal(err)
	}
	if err := k.TakeRead(is, early); err != nil || k.Object(at) != nil {
		t.Error("a read of before it had gone counts")
	}
	if err := k.TakeRead(is, k.Ask(at)); err != nil || k.Object(at) == nil {
		t.Errorf("it is there, and not known: %v", err)
	}
	// That there was none is not said of the next one.
	early = k.Ask(at)
	if err := k.Take(Event{Claim: claimOf("b", "12", "Free")}); err != nil {
		t.Fatal(err)
	}
	if err := k.TakeGone(at, early); err != nil || k.Object(at) == nil {
		t.Errorf("the next one counts as gone: %v", err)
	}
	if err := k.TakeGone(at, k.Ask(at)); err != nil || k.Object(at) != nil {
		t.Errorf("it has gone, and is known: %v", err)
	}
}
