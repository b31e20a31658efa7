package agent

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// run is n addresses from first on, in the state.
func run(first string, n int, s eni.State) (list []eni.Address) {
	for addr := netip.MustParseAddr(first); n > 0; n, addr = n-1, addr.Next() {
		list = append(list, eni.Address{Addr: addr, State: s})
	}
	return list
}

func TestPeopleAreToldWhyFreeAddressesOfPrefixesStay(t *testing.T) {
	slash28, left := eni.Block{Bits: 28, Size: 16}, eni.Block{Bits: 28, Size: 1}
	whole := append(run("10.0.1.16", 3, eni.Used), run("10.0.1.19", 13, eni.Free)...)
	idle := run("10.0.1.32", 16, eni.Free)
	singles := append(run("10.0.1.5", 2, eni.Used), run("10.0.1.7", 1, eni.Free)...)
	v6 := run("2001:db8::5", 40, eni.Free)
	for _, tt := range []struct {
		name  string
		block eni.Block
		parts [][]eni.Address
		want  string
	}{
		{"addresses come one by one", eni.Block{}, [][]eni.Address{whole, singles}, ""},
		{"none yet", slash28, nil, ""},
		{"nothing in use", slash28, [][]eni.Address{idle, v6}, "1 of 16 addresses each"},
		{"one in use", slash28, [][]eni.Address{whole, idle},
			"2 of 16 addresses each; 1 in use, whose 13 free addresses stay until all of a prefix are free"},
		{"one that is used up", slash28, [][]eni.Address{run("10.0.1.16", 16, eni.Used)}, "1 of 16 addresses each; 1 in use"},
		{"a cooldown keeps one too", slash28, [][]eni.Address{run("10.0.1.16", 1, eni.Cooling), run("10.0.1.17", 15, eni.Free)},
			"1 of 16 addresses each; 1 in use, whose 15 free addresses stay until all of a prefix are free"},
		{"single addresses", slash28, [][]eni.Address{singles}, "0 of 16 addresses each; 3 single addresses take the room of a prefix each"},
		{"turned off", left, [][]eni.Address{whole, singles},
			"turned off, and 1 of 16 addresses each are left; 1 in use, whose 13 free addresses stay until all of a prefix are free"},
		{"turned off, and all gone", left, [][]eni.Address{singles}, ""},
	} {
		cached := &ipam.State{}
		for _, part := range tt.parts {
			cached.Addresses = append(cached.Addresses, part...)
		}
		if got := countPrefixes(tt.block, cached).line(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := countPrefixes(slash28, nil).line(); got != "" {
		t.Errorf("a node cache that can't be read: %q", got)
	}
}

// A node that had single addresses before it was told to take prefixes is full of them: more ENIs, which it is advised
// to have otherwise, are not what it lacks.
func TestTheCauseNamesSingleAddressesThatTakeTheRoomOfPrefixes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.2.0/23"))
		limits := slashes28(3)
		limits.ENIs = 1
		n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: limits, Subnet: "subnet-a"})
		must(t, w.account.Fragment("subnet-a", true))
		_, err := w.account.Node("n1").AssignAddresses(t.Context(), n.attached()[0].ID, eni.IPv4, 3)
		must(t, err)
		must(t, w.account.Fragment("subnet-a", false))
		n.start(-1, false)
		defer n.stop()
		sleep(5 * time.Second)
		for range 5 {
			_ = n.add()
		}
		sleep(5 * time.Second)
		s := n.status()
		const want = "3 single addresses take the room of a prefix each"
		if !strings.Contains(s.Prefixes, want) || !strings.Contains(s.Problem, want) || !strings.Contains(strings.Join(s.TargetCauses, "; "), "3 single ipv4 addresses") {
			t.Errorf("prefixes %q, cause %q, blockers %q; want %q", s.Prefixes, s.Problem, s.TargetCauses, want)
		}
	})
}
