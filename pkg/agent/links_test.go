package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"pgregory.net/rapid"
)

// anyLinks draws a node of up to five ENIs: its cache, which of their devices are there, and which
// ENIs are being deleted.
func anyLinks(t *rapid.T) (*ipam.State, map[string]bool, func(string) bool) {
	cached, devices, leaving := &ipam.State{}, map[string]bool{}, map[string]bool{}
	for i := range 5 {
		id, device := fmt.Sprint("eni-", i), fmt.Sprint("eth", i)
		devices[device], leaving[id] = rapid.Bool().Draw(t, device), rapid.Bool().Draw(t, id+" leaves")
		if rapid.Bool().Draw(t, id) {
			cached.ENIs = append(cached.ENIs, eni.Interface{ID: id, Index: i, Device: device})
		}
	}
	return cached, devices, func(id string) bool { return leaving[id] }
}

func idsOf(list []eni.Interface) (ids []string) {
	for _, nic := range list {
		ids = append(ids, nic.ID)
	}
	slices.Sort(ids)
	return ids
}

// Whatever comes and goes: an ENI counts as without link exactly while it is in the cache, stays and
// has no device, and each turn of that is told once.
func TestEachLossOfALinkIsToldOnceAndEachReturn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l links
		told := map[string]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "looks") {
			cached, devices, leaving := anyLinks(t)
			before := l.ids()
			next, gone, back := l.lose(cached, devices, leaving)
			if !slices.Equal(before, l.ids()) {
				t.Fatal("a look changed what was known before it")
			}
			for _, id := range idsOf(gone) {
				if told[id] {
					t.Fatalf("the loss of %s is told twice", id)
				}
				told[id] = true
			}
			for _, id := range idsOf(back) {
				if !told[id] {
					t.Fatalf("%s is back and was not lost", id)
				}
				delete(told, id)
			}
			for _, nic := range cached.ENIs {
				want := !devices[nic.Device] && !leaving(nic.ID)
				if _, lost := next.lost[nic.ID]; lost != want || told[nic.ID] != want {
					t.Fatalf("%s: lost %t, told %t, want %t", nic.ID, lost, told[nic.ID], want)
				}
			}
			if len(told) != len(next.lost) {
				t.Fatalf("told %v of %v", told, next.ids())
			}
			if _, gone, back := next.lose(cached, devices, leaving); len(gone)+len(back) > 0 {
				t.Fatalf("another look at the same tells %v and %v", idsOf(gone), idsOf(back))
			}
			if l = next; len(l.causes()) != len(l.lost) || len(l.lines(cached)) != len(l.lost) {
				t.Fatalf("causes %v and lines %v of %v", l.causes(), l.lines(cached), l.ids())
			}
		}
	})
}

// Something missing is looked for again within ten seconds and not in a loop, and what is missed
// newly within a second, whatever else has been missing for hours. With nothing missing nothing is due.
func TestMissingLinksAreLookedForSoonAndNotAllTheTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l links
		now := time.Hour
		if l.next(now) != 0 {
			t.Fatal("a look is due with nothing missing")
		}
		for range rapid.IntRange(1, 8).Draw(t, "looks") {
			now += time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "later"))
			before := l.awaited
			ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "awaited")
			l = l.await(ids, now)
			in := l.next(now)
			switch {
			case len(ids) == 0 && in != 0:
				t.Fatalf("a look is due in %s with nothing missing", in)
			case len(ids) > 0 && (in < soon || in > 10*time.Second):
				t.Fatalf("%v are looked for in %s", ids, in)
			}
			for _, id := range ids {
				if !slices.Contains(before, id) && in > time.Second {
					t.Fatalf("%s is new and looked for in %s", id, in)
				}
			}
		}
	})
}
