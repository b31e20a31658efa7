package cni

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// heldLab is a node whose pool others hold as an ADD has found out.
func heldLab(t *testing.T, s ipam.Settings) *lab {
	t.Helper()
	l := newLab(t, s)
	for _, addr := range []string{"10.0.0.11", "10.0.0.12", "10.0.0.21", "10.0.0.22"} {
		nettest.Run(t, "ip", "route", "add", addr, "dev", "lo")
		t.Cleanup(func() { nettest.Run(t, "sh", "-c", "ip route del "+addr+" dev lo 2>/dev/null || true") })
	}
	l.wantError("4 held by others (10.0.0.11: route 10.0.0.11 dev lo")
	return l
}

// wantError is an ADD that fails with all the words.
func (l *lab) wantError(words ...string) {
	l.t.Helper()
	ns := nettest.NewNetns(l.t, "refused")
	_, err := l.add("refused", ns.Path, plain)
	ns.Delete()
	for _, want := range words {
		if err == nil || !strings.Contains(err.Error(), want) {
			l.t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

// Without an agent nobody hears that others let an address go.
func TestAddTakesAnAddressThatOthersHoldNoMore(t *testing.T) {
	for _, routing := range []ipam.Routing{ipam.Map, ipam.Rule} {
		t.Run(routing.String(), func(t *testing.T) {
			l := heldLab(t, ipam.Settings{Routing: routing})
			nettest.Run(t, "ip", "route", "del", "10.0.0.11", "dev", "lo")
			nettest.Run(t, "ip", "route", "del", "10.0.0.22", "dev", "lo")
			l.now += time.Second
			l.wantError("2 cooling (next free in 30s)", "2 held by others (10.0.0.12: route 10.0.0.12 dev lo")
			l.now += 30 * time.Second
			a, b := nettest.NewNetns(t, "a"), nettest.NewNetns(t, "b")
			if got := address(t, l, "a", a.Path); got != "10.0.0.11" {
				t.Errorf("the first pod got %s", got)
			}
			if got := address(t, l, "b", b.Path); got != "10.0.0.22" {
				t.Errorf("the second pod got %s", got)
			}
			l.mustDel("a", a.Path, plain)
			l.mustDel("b", b.Path, plain)
		})
	}
}

// A pool that was loaded while others held an address has set up nothing for it.
func TestAddTakesNoAddressThatThePacketFilterDoesNotKnow(t *testing.T) {
	for name, tt := range map[string]struct {
		settings ipam.Settings
		remove   string
	}{
		"its ENI's mark":     {ipam.Settings{}, "nft delete element inet enipool source4 { 10.0.0.21 }"},
		"the node's address": {ipam.Settings{SNAT: true}, "nft delete element inet enipool pool4 { 10.0.0.21 }"},
	} {
		t.Run(name, func(t *testing.T) {
			l := heldLab(t, tt.settings)
			nettest.Run(t, "sh", "-c", tt.remove)
			for _, addr := range []string{"10.0.0.21", "10.0.0.12"} {
				nettest.Run(t, "ip", "route", "del", addr, "dev", "lo")
			}
			l.now += time.Second
			l.wantError("1 cooling", "3 held by others")
			if got, want := l.book(), "10.0.0.11 held\n10.0.0.12 cooling\n10.0.0.21 held\n10.0.0.22 held"; got != want {
				t.Errorf("the pool has\n%s\nwant\n%s", got, want)
			}
			l.view(func(s *ipam.State) {
				if got := s.Addresses[2].HeldBy; got != notSetUpYet {
					t.Errorf("%s is held by %s", s.Addresses[2].Addr, got)
				}
			})
		})
	}
}
