package cni

import (
	"slices"
	"testing"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestOnlyStaleAllocationsAreOfferedAndOnlyThosePickedAreReclaimed(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	live, gone, other := nettest.NewNetns(t, "live"), nettest.NewNetns(t, "gone"), nettest.NewNetns(t, "other")
	l.mustAdd("live", live.Path, plain)
	l.mustAdd("gone", gone.Path, plain)
	l.mustAdd("other", other.Path, plain)
	for _, ns := range []nettest.Netns{gone, other} {
		// The kernel takes its time to remove the links of a namespace.
		ns.Run(t, "ip", "link", "del", "eth0")
		ns.Delete()
	}
	var stale []string
	released, err := l.Reclaim(t.Context(), func(o eni.Owner) bool {
		stale = append(stale, o.Container)
		return o.Container != "other"
	})
	if want := []string{"gone", "other"}; !slices.Equal(stale, want) {
		t.Errorf("offered %v, want %v", stale, want)
	}
	if err != nil || len(released) != 1 {
		t.Fatalf("released %v, %v; want one address", released, err)
	}
	if got, want := l.takenAddresses(), "10.0.0.11 used live\n10.0.0.12 cooling\n10.0.0.21 used other"; got != want {
		t.Errorf("node state:\n%s\nwant:\n%s", got, want)
	}
	l.mustDel("live", live.Path, plain)
	l.mustDel("other", other.Path, plain)
}

// Between the look at the node state and the cleaning the runtime may end the attachment
// itself and add it again: the new one keeps its link, its address and its rules.
func TestASweepLeavesWhatWasAddedAgainMeanwhile(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run("routing "+routing.String(), func(t *testing.T) {
			l := newLab(t, ipam.Settings{Routing: routing})
			h := newHost(t)
			paths := map[string]string{}
			for _, id := range []string{"a", "b", "again"} { // the last is on ENI 1, which has rules
				paths[id] = nettest.NewNetns(t, id).Path
				l.mustAdd(id, paths[id], plain)
			}
			var res *current.Result
			released, err := l.sweep(t.Context(), h, func(a eni.Address) (bool, error) {
				if a.Owner.Container == "again" {
					l.mustDel("again", paths["again"], plain)
					l.now += time.Minute // the address has cooled and is the next one's, of the same sandbox
					res = l.mustAdd("again", paths["again"], plain)
				}
				return a.Owner.Container != "b", nil
			})
			if err != nil || len(released) != 1 || released[0].Owner.Container != "a" {
				t.Errorf("released %v, %v", released, err)
			}
			if err := l.check("again", paths["again"], plain, res); err != nil {
				t.Errorf("the new attachment is harmed: %v", err)
			}
			l.delAll("b", "again")
		})
	}
}

// The same for a link that no record knew: the runtime adds the attachment again, which
// replaces the link, before a GC comes to it.
func TestAGCLeavesAStaleAllocationThatWasAddedAgainMeanwhile(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	path := nettest.NewNetns(t, "again").Path
	l.mustAdd("again", path, plain)
	key := eni.Key{Network: "pods", Container: "again", IfName: "eth0"}
	err := l.Cache.Update(t.Context(), func(s *ipam.State) error {
		s.Free(key, l.now)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	var res *current.Result
	err = l.removeLeftovers(t.Context(), h, func(k eni.Key) bool {
		if res == nil && k == key {
			l.mustDel("again", path, plain)
			res = l.mustAdd("again", path, plain)
		}
		return k == key
	})
	if err != nil {
		t.Error(err)
	}
	if err := l.check("again", path, plain, res); err != nil {
		t.Errorf("the new attachment is harmed: %v", err)
	}
	l.delAll("again")
}
