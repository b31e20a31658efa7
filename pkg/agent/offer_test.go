package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
)

// offering is a node that offers what it has too many of 40 addresses, with 9 that it needs.
type offering struct {
	offer
	has   int
	now   time.Duration
	since time.Duration // when the subnet began to show addresses
}

// describes lets the node see how many addresses the subnet has, half a minute after it saw that last.
func (o *offering) describes(free int) {
	o.now += 30 * time.Second
	if free > 0 {
		if o.since == 0 {
			o.since = o.now
		}
		o.noteUntaken(o.now - o.since)
		return
	}
	o.since = 0
	o.noteTaken(o.now)
	if keep := keepAfter([]*scarcity{{offer: o.offer}}, 40, o.has, 9); keep < o.has {
		o.offer, o.has = offer{last: o.has - keep, at: o.now + 10*time.Second}, keep
	}
}

func TestAnOfferGrowsWhileItIsTaken(t *testing.T) {
	const took = -1 // the node takes back what it released last
	for _, tt := range []struct {
		name string
		free []int
		want string
	}{
		{"all of it goes", []int{0, 0, 0, 0, 0, 0, 0, 0}, "[38 34 26 10 9 9 9 9]"},
		{"nobody waits", []int{0, 1, 1, 1, 1, 1, 1, 1}, "[38 38 38 38 38 38 38 38]"},
		{"it goes late", []int{0, 1, 1, 0, 0}, "[38 38 38 34 26]"},
		{"it lay there", []int{0, 0, 2, 2, 2, 2, 2, 2, 2, 0, 0}, "[38 34 34 34 34 34 34 34 34 32 28]"},
		{"its own pods came", []int{0, 0, 0, took, 0, took, 0, took, 0}, "[38 34 26 34 32 34 32 34 32]"},
	} {
		o, sizes := &offering{has: 40}, []int(nil)
		for _, free := range tt.free {
			if free == took {
				o.has += o.last
				o.tookBack()
			} else {
				o.describes(free)
			}
			sizes = append(sizes, o.has)
		}
		if got := fmt.Sprint(sizes); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A describe that was asked for before an address was back, or so soon after that it may not show
// it, tells nothing of whether it is gone. Nor does one of one subnet of another.
func TestAnOfferIsGoneWhenADescribeCanTell(t *testing.T) {
	n := &Agent{account: account{scarce: map[string]*scarcity{"a": {}, "b": {}}}}
	n.conf.Settle = 10 * time.Second
	a, b := n.scarce["a"], n.scarce["b"]
	at := func(now time.Duration) int {
		a.offer.noteTaken(now)
		return keepAfter([]*scarcity{a, b}, 20, 16, 9)
	}
	b.offer.noteTaken(0)
	if got := at(time.Minute); got != 14 {
		t.Errorf("it keeps %d at first, want 14: what it has and not what it would have", got)
	}
	n.noteOffer(1, time.Minute)
	b.offer.noteTaken(2 * time.Minute)
	n.offerArrived("a", 65*time.Second)
	if got := at(74 * time.Second); got != 20 {
		t.Errorf("it keeps %d before a describe can tell", got)
	}
	if got := at(75 * time.Second); got != 14 {
		t.Errorf("it keeps %d when a describe tells that one is gone, want 14", got)
	}
	n.noteOffer(2, 80*time.Second)
	if got := at(2 * time.Minute); got != 20 {
		t.Errorf("it keeps %d while one subnet tells nothing", got)
	}
}

// What another node has released for pods that wait is no end of the shortage for a node that would
// take nothing itself: it would keep what it has too many until it looked again by chance.
func TestOneAddressOnItsWayToOthersEndsNoShortage(t *testing.T) {
	v := view{subnets: []cloud.Subnet{{ID: "a", Free: 1}}}
	s := scarcity{}
	for at := range 5 {
		s.sawEmpty(time.Duration(at)*eagerLook, 0, false, false)
	}
	seen := 5 * eagerLook
	s.sawSome(seen)
	if s.endIfRoom(v, "a", -3, seen+2*quiet); !s.full {
		t.Error("the shortage is over when one address was seen once")
	}
	s.sawSome(seen + untaken)
	if s.endIfRoom(v, "a", -3, seen+untaken); s.full {
		t.Error("the shortage is not over when nobody took the address for long")
	}
}
