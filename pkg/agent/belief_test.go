package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"pgregory.net/rapid"
)

const settled = 10 * time.Second

func believed(v *view, d doubts, notes cloud.Notes) belief {
	return belief{view: v, doubts: d, notes: notes, mem: &memory{}, settle: settled, refused: func(string) bool { return false }}
}

func lineAt(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// anyCache draws a cache of two ENIs with a few addresses in any state.
func anyCache(t *rapid.T) *ipam.State {
	cached := &ipam.State{ENIs: []eni.Interface{{ID: "eni-a"}, {ID: "eni-b", Index: 1}}}
	cached.Settings.Families = []eni.Family{eni.IPv4}
	for i := range rapid.IntRange(0, 8).Draw(t, "lines") {
		line := eni.Address{Addr: lineAt(i), ENI: i % 2, State: rapid.SampledFrom([]eni.State{eni.Free, eni.Used, eni.Cooling, eni.Releasing, eni.Held}).Draw(t, "state")}
		if line.State == eni.Used {
			line.Owner, line.Lost = &eni.Owner{Key: eni.Key{Container: fmt.Sprint(i)}}, rapid.Bool().Draw(t, "lost")
		}
		cached.Addresses = append(cached.Addresses, line)
	}
	return cached
}

// anyView draws what a describe at that time shows of the two ENIs: each address on one of
// them, or on none.
func anyView(t *rapid.T, cached *ipam.State, at time.Duration) *view {
	v := &view{known: true, start: at}
	shown := [2][]netip.Addr{}
	for i := range len(cached.Addresses) + 2 {
		if on := rapid.IntRange(-1, 1).Draw(t, "on"); on >= 0 {
			shown[on] = append(shown[on], lineAt(i))
		}
	}
	for i, id := range []string{"eni-a", "eni-b"} {
		if rapid.IntRange(0, 3).Draw(t, id) > 0 {
			v.enis = append(v.enis, cloud.Interface{ID: id, Index: rapid.SampledFrom([]int{i, i, i, -1}).Draw(t, "index"), Ours: true, Addresses: shown[i]})
		}
	}
	return v
}

// Since when something is amiss is when the first look of those in a row found it so. A look that
// finds it right ends that.
func TestWhatIsAmissIsSoSinceTheFirstLookInARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s since[int]
		first := map[int]time.Duration{}
		for look := range rapid.IntRange(1, 10).Draw(t, "looks") {
			now := time.Duration(look+1) * time.Second
			found := rapid.SliceOfDistinct(rapid.IntRange(0, 4), rapid.ID[int]).Draw(t, "found")
			s = s.still(slices.Values(found), now)
			for k := range 5 {
				_, was := first[k]
				switch found := slices.Contains(found, k); {
				case !found:
					delete(first, k)
				case !was:
					first[k] = now
				}
				if at, is := first[k]; s.has(k) != is || is && s.of(k, now) != at || !is && s.of(k, now) != now {
					t.Fatalf("%d is amiss since %s (%t), want %s (%t)", k, s.of(k, now), s.has(k), at, is)
				}
			}
		}
	})
}

// Through any describes: what the last of them shows in its place is neither held back, lost nor forgotten;
// nothing is lost by one describe alone; what a pod has is never forgotten; and what own calls took
// goes at once, while what nobody took stays until looks far enough apart agree.
func TestTheCacheLosesOnlyWhatIsSurelyGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cached, d := anyCache(t), noDoubts()
		at, missing := time.Minute, map[netip.Addr]time.Duration{}
		for range rapid.IntRange(1, 4).Draw(t, "describes") {
			at += time.Duration(rapid.IntRange(1, 12).Draw(t, "later")) * time.Second
			v := anyView(t, cached, at)
			var notes cloud.Notes
			if len(cached.Addresses) > 0 && rapid.Bool().Draw(t, "called") {
				taken := rapid.SampledFrom(cached.Addresses).Draw(t, "taken")
				notes.Gone = map[string][]netip.Addr{ids(cached)[taken.ENI]: {taken.Addr}}
			}
			d = d.sighted(v, cached)
			f := believed(v, d, notes).compare(cached, nil, at)
			places, id := v.places(), ids(cached)
			for _, line := range cached.Addresses {
				here := places[line.Addr] == id[line.ENI]
				if first, was := missing[line.Addr]; here {
					delete(missing, line.Addr)
				} else if !was || first > at {
					missing[line.Addr] = at
				}
				own := slices.Contains(notes.Gone[id[line.ENI]], line.Addr)
				sure := !here && at-missing[line.Addr] >= settled
				dropped, lost, held := slices.Contains(f.drop, line.Addr), slices.Contains(f.lost, line.Addr), slices.Contains(f.suspect, line.Addr)
				switch {
				case here && (dropped || lost || held):
					t.Fatalf("%v is where it should be: dropped %t, lost %t, held back %t", line, dropped, lost, held)
				case dropped && line.State != eni.Releasing:
					t.Fatalf("%v is forgotten, and nobody gives it back", line)
				case line.State == eni.Releasing && !here && dropped != (own || sure):
					t.Fatalf("%v is dropped %t: by an own call %t, surely gone %t", line, dropped, own, sure)
				case lost && !sure:
					t.Fatalf("%v is lost, and missing since %s only", line, at-missing[line.Addr])
				case held && line.State == eni.Used:
					t.Fatalf("%v is held back, and a pod has it", line)
				}
			}
			for _, gone := range f.dropENI {
				if nic, shown := v.eni(gone); shown && nic.Index >= 0 {
					t.Fatalf("%s is forgotten and attached", gone)
				}
			}
			for index, addrs := range f.addrs {
				for _, addr := range addrs {
					if places[addr] != id[index] || knownOf(cached)[addr] {
						t.Fatalf("%s is taken in on the ENI %d: on %q, in the cache %t", addr, index, places[addr], knownOf(cached)[addr])
					}
				}
			}
		}
	})
}

// An own call's result wins over an older describe: an ENI is what the engine knows, and only while a call is
// under way what it was before.
func TestTheViewIsWhatOwnCallsMadeOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cached := anyCache(t)
		before, now := anyView(t, cached, time.Minute), anyView(t, cached, 2*time.Minute)
		busy := map[string]bool{"eni-a": rapid.Bool().Draw(t, "a call on a"), "eni-b": rapid.Bool().Draw(t, "a call on b")}
		before.places()
		next := before.renewed(now.enis, func(id string) bool { return busy[id] })
		if next.agrees || next.start != before.start || len(next.enis) != len(now.enis) {
			t.Fatalf("the view is %+v", next)
		}
		for _, nic := range next.enis {
			want, _ := now.eni(nic.ID)
			if had, was := before.eni(nic.ID); was && busy[nic.ID] {
				want = had
			}
			if nic.Index != want.Index || !slices.Equal(nic.Addresses, want.Addresses) {
				t.Fatalf("%s is %+v, want %+v", nic.ID, nic, want)
			}
			for _, addr := range nic.Addresses {
				if at := next.places()[addr]; nic.Index >= 0 && at == "" {
					t.Fatalf("%s of %s is nowhere", addr, nic.ID)
				}
			}
		}
	})
}
