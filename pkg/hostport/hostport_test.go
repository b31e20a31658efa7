package hostport

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"github.com/google/go-cmp/cmp"
)

// record is that of a network of a sandbox. Words are its addresses and ports: "80" is TCP
// 80 on all addresses of the node, "80@10.0.0.1" on one.
func record(sandbox, network string, turn int, words ...string) podrecord.Record {
	r := podrecord.Record{Key: eni.Key{Network: network, Container: sandbox, IfName: "eth0"}, Pod: sandbox, Turn: turn}
	for _, w := range words {
		if a, err := netip.ParseAddr(w); err == nil {
			r.Addrs = append(r.Addrs, a)
			continue
		}
		number, host, _ := strings.Cut(w, "@")
		p := netconf.HostPort{Transport: netconf.TCP}
		if _, err := fmt.Sscan(number, &p.Port); err != nil {
			panic(err)
		}
		p.PodPort = p.Port + 8000
		p.Host, _ = netip.ParseAddr(host)
		r.Ports = append(r.Ports, p)
	}
	return r
}

// text is the ports as "where > to which pod", in the order of the list.
func text(list []netconf.PodPorts) (lines []string) {
	for _, p := range list {
		for _, port := range p.Ports {
			if port.Serves(p.Pod) {
				lines = append(lines, fmt.Sprintf("%s > %s", port, p.Pod))
			}
		}
	}
	return lines
}

func TestAPortIsTakenByAnotherSandboxOnly(t *testing.T) {
	for _, tt := range []struct {
		name        string
		r           podrecord.Record
		other       podrecord.Record
		taken       string
		turnIfShare int
	}{
		{"the same port", record("a", "n", 0, "10.0.0.5", "80"), record("b", "n", 0, "10.0.0.6", "79", "80"), "tcp port 80", 0},
		{"all IPv4 addresses are in all addresses", record("a", "n", 0, "10.0.0.5", "80@0.0.0.0"), record("b", "n", 0, "10.0.0.6", "80"), "tcp port 80 of 0.0.0.0", 0},
		{"all addresses hold all IPv6 addresses", record("a", "n", 0, "fd00::5", "80"), record("b", "n", 0, "fd00::6", "80@::"), "tcp port 80", 0},
		{"one address", record("a", "n", 0, "10.0.0.5", "80@10.0.0.1"), record("b", "n", 0, "10.0.0.6", "80@10.0.0.1"), "tcp port 80 of 10.0.0.1", 0},
		{"another network of the same sandbox", record("a", "n", 0, "10.0.0.5", "80"), record("a", "m", 2, "10.0.0.6", "80"), "", 3},
		{"another network with other ports", record("a", "n", 0, "10.0.0.5", "80"), record("a", "m", 2, "10.0.0.6", "81"), "", 0},
		{"another port", record("a", "n", 0, "10.0.0.5", "80"), record("b", "n", 0, "10.0.0.6", "81"), "", 0},
		{"another address", record("a", "n", 0, "10.0.0.5", "80@10.0.0.1"), record("b", "n", 0, "10.0.0.6", "80@10.0.0.2"), "", 0},
		{"one address beside all of them", record("a", "n", 0, "10.0.0.5", "80@10.0.0.1"), record("b", "n", 0, "10.0.0.6", "80"), "", 0},
		{"the families' all", record("a", "n", 0, "10.0.0.5", "fd00::5", "80@0.0.0.0"), record("b", "n", 0, "10.0.0.6", "fd00::6", "80@::"), "", 0},
		{"pods of different families", record("a", "n", 0, "10.0.0.5", "80"), record("b", "n", 0, "fd00::6", "80"), "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := findTaken(tt.r, []podrecord.Record{tt.other})
			var taken *TakenError
			if got := errors.As(err, &taken); got != (tt.taken != "") || got && (taken.Port.String() != tt.taken || taken.Owner.Key != tt.other.Key) {
				t.Errorf("error %v, want %q taken", err, tt.taken)
			}
			if turn := nextTurn(tt.r, []podrecord.Record{tt.other}); turn != tt.turnIfShare {
				t.Errorf("turn %d, want %d", turn, tt.turnIfShare)
			}
		})
	}
}

func TestOfNetworksThatShareAPortTheFirstHasItAndTheNextInheritsIt(t *testing.T) {
	first := record("a", "first", 0, "10.0.0.5", "80", "81")
	second := record("a", "second", 1, "10.0.0.6", "fd00::6", "80", "82")
	third := record("a", "third", 2, "10.0.0.7", "fd00::7", "82", "80")
	stranger := record("b", "first", 0, "10.0.0.8", "83")
	for _, tt := range []struct {
		name            string
		r               podrecord.Record
		others          []podrecord.Record
		held, inherited []string
	}{
		{"alone", first, []podrecord.Record{stranger}, []string{"tcp port 80 > 10.0.0.5", "tcp port 81 > 10.0.0.5"}, nil},
		{"the first of two", first, []podrecord.Record{second, stranger}, []string{"tcp port 80 > 10.0.0.5", "tcp port 81 > 10.0.0.5"}, []string{"tcp port 80 > 10.0.0.6"}},
		{"the second of two", second, []podrecord.Record{first}, []string{"tcp port 82 > 10.0.0.6", "tcp port 80 > fd00::6", "tcp port 82 > fd00::6"}, []string{"tcp port 80 > 10.0.0.5"}},
		{"the first of three", first, []podrecord.Record{third, second}, []string{"tcp port 80 > 10.0.0.5", "tcp port 81 > 10.0.0.5"}, []string{"tcp port 80 > 10.0.0.6"}},
		{"the second of three", second, []podrecord.Record{third, first}, []string{"tcp port 82 > 10.0.0.6", "tcp port 80 > fd00::6", "tcp port 82 > fd00::6"},
			[]string{"tcp port 82 > 10.0.0.7", "tcp port 82 > fd00::7", "tcp port 80 > fd00::7", "tcp port 80 > 10.0.0.5"}},
		{"the third of three", third, []podrecord.Record{first, second}, nil,
			[]string{"tcp port 80 > 10.0.0.5", "tcp port 82 > 10.0.0.6", "tcp port 80 > fd00::6", "tcp port 82 > fd00::6"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.held, text(portsHeld(tt.r, tt.others))); diff != "" {
				t.Errorf("held:\n%s", diff)
			}
			if diff := cmp.Diff(tt.inherited, text(inheritedPorts(tt.r, tt.others))); diff != "" {
				t.Errorf("inherited:\n%s", diff)
			}
		})
	}
	// Whoever is wanted first gets the port, also from the agent.
	wanted := text(Wanted([]podrecord.Record{third, second, stranger, first}))
	if diff := cmp.Diff([]string{"tcp port 83 > 10.0.0.8", "tcp port 80 > 10.0.0.5", "tcp port 81 > 10.0.0.5"}, wanted[:3]); diff != "" {
		t.Errorf("wanted:\n%s", diff)
	}
}

func TestAPortNamedTwiceIsOneElement(t *testing.T) {
	r := record("a", "n", 0, "10.0.0.5", "80", "80@0.0.0.0", "80@10.0.0.1")
	var got []string
	for _, m := range uniqueMembers(Ports(r)) {
		got = append(got, fmt.Sprintf("%s %s", m.Set, m.Element.Key))
	}
	if diff := cmp.Diff([]string{"hairpin4 10.0.0.5 . 10.0.0.5", "hostport4 tcp . 80", "addrport4 10.0.0.1 . tcp . 80"}, got); diff != "" {
		t.Error(diff)
	}
}

// What an interrupted write left is no reason to refuse a port, and gone with the next
// look at all records.
func TestReserveTakesNoNoticeOfHalfARecord(t *testing.T) {
	n := Node{Records: podrecord.Beside(t.TempDir() + "/node.cache")}
	if _, err := n.Reserve(record("a", "n", 0, "10.0.0.5", "80")); err != nil {
		t.Fatal(err)
	}
	half := n.Records.Path + "/" + netconf.HostDevice(eni.Key{Container: "cut"}) + ".new"
	damaged := strings.TrimSuffix(half, ".new")
	for _, name := range []string{half, damaged} {
		if err := os.WriteFile(name, []byte("enipool pod rec"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Reserve(record("b", "n", 0, "10.0.0.6", "80")); !errors.As(err, new(*TakenError)) {
		t.Errorf("error %v, want the port taken", err)
	}
	r, err := n.Reserve(record("a", "m", 0, "10.0.0.6", "80"))
	if err != nil || r.Turn != 1 {
		t.Errorf("turn %d, %v; want 1", r.Turn, err)
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("the half record: %v", err)
	}
	if _, err := os.Stat(damaged); err != nil {
		t.Errorf("the damaged record, which DEL removes: %v", err)
	}
}
