package cni

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestTheDeadAreFoundAndOnlyThoseAskedForAreReclaimed(t *testing.T) {
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
	dead, err := l.Dead(t.Context())
	if err != nil || len(dead) != 2 || dead[0].Container != "gone" || dead[1].Container != "other" {
		t.Fatalf("dead: %v, %v; want gone and other", dead, err)
	}
	var alive eni.Owner
	l.view(func(s *ipam.State) { alive = *s.Used()[0].Owner })
	released, err := l.ReclaimFrom(t.Context(), []eni.Owner{dead[0], alive})
	if err != nil || len(released) != 1 {
		t.Fatalf("released %v, %v; want one address", released, err)
	}
	if got, want := l.book(), "10.0.0.11 used live\n10.0.0.12 cooling\n10.0.0.21 used other"; got != want {
		t.Errorf("book:\n%s\nwant:\n%s", got, want)
	}
	l.mustDel("live", live.Path, plain)
	l.mustDel("other", other.Path, plain)
}
