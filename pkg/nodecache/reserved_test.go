package nodecache

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// kept is a node state with what is reserved and claimed in each way.
func kept() *ipam.State {
	s := small()
	s.Settings.Gated = []string{"db", "cache"}
	first := eni.Owner{Key: key("3f2a"), Netns: "/run/netns/x", NetnsInode: 4026532000, Namespace: "db", Pod: "db-1", UID: "u-1"}
	second := first
	second.Container, second.Pod, second.UID = "77aa", "db-2", ""
	third := first
	third.Container = "90bc"
	for i, a := range []eni.Address{
		{State: eni.Reserved, Reservation: &eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-0", UID: "u-0"}},
		{State: eni.Reserved, Reservation: &eni.Reservation{Topology: "web"}},
		{State: eni.Reserved, Reservation: &eni.Reservation{Namespace: "db", Pod: "db-3"}},
		{State: eni.Used, Owner: &first, Reservation: &eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-1", UID: "u-1"}},
		{State: eni.Used, Owner: &second, Reservation: &eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-2", UID: "u-2"}},
		{State: eni.Used, Owner: &third, Lost: true, Reservation: &eni.Reservation{Namespace: "db", Pod: "db-1"}},
		{State: eni.Releasing, Reservation: &eni.Reservation{Topology: "db", Namespace: "db", Pod: "db-4", UID: "u-4"}},
	} {
		a.Addr, a.ENI, a.Since = netip.AddrFrom4([4]byte{10, 0, 0, byte(31 + i)}), 1, time.Duration(i)*time.Second
		s.Addresses = append(s.Addresses, a)
	}
	return s
}

func TestWhatIsReservedReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := eni.Reservation{Topology: names(20).Draw(t, "topology"), Namespace: names(20).Draw(t, "namespace"),
			Pod: names(20).Draw(t, "pod"), UID: rapid.OneOf(names(20), rapid.SampledFrom([]string{"=", "*", "uid="})).Draw(t, "uid")}
		want := eni.Address{Addr: netip.MustParseAddr("10.0.0.31"), State: eni.Reserved, Since: time.Second, Reservation: &r}
		switch rapid.IntRange(0, 2).Draw(t, "state") {
		case 0:
			want.State = eni.Releasing
		case 1:
			o := eni.Owner{Key: key(names(20).Draw(t, "container")), Netns: names(20).Draw(t, "netns"), Namespace: r.Namespace, Pod: r.Pod,
				UID: rapid.SampledFrom([]string{r.UID, "", "u-1"}).Draw(t, "owner's uid")}
			want.State, want.Owner, want.Lost = eni.Used, &o, rapid.Bool().Draw(t, "lost")
			if r.IsNobodys() {
				r.Namespace, r.UID = "", ""
			}
		}
		text, err := encodeAddress(&want)
		if err != nil {
			t.Fatal(err)
		}
		var got eni.Address
		if err := decodeAddress(appendLine(nil, text, 3)[:textSize], &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(show(want)+fmt.Sprint(want.Lost), show(got)+fmt.Sprint(got.Lost)); diff != "" {
			t.Fatalf("%q: %s", text, diff)
		}
	})
}

// A plugin of an earlier release would serve a pod that waits for its own address with any other one.
func TestAReaderOfBeforeRefusesWhatIsReserved(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(*ipam.State)
		min    int
	}{
		"nothing":                     {func(*ipam.State) {}, 1},
		"a gated namespace":           {func(s *ipam.State) { s.Settings.Gated = []string{"db"} }, 2},
		"an address that is reserved": {func(s *ipam.State) { s.Reserve(map[netip.Addr]eni.Reservation{s.Addresses[2].Addr: {}}, time.Hour) }, 2},
		"an address that is claimed": {func(s *ipam.State) {
			s.Reserve(map[netip.Addr]eni.Reservation{s.Addresses[0].Addr: {Namespace: "default", Pod: "web"}}, time.Hour)
		}, 2},
	} {
		s := small()
		tt.change(s)
		text := textOf(mustEncode(t, s))
		if want := fmt.Sprintf("%s %d min %d boot ", magic, tt.min, tt.min); !strings.HasPrefix(text, want) {
			t.Errorf("%s: the head is %q, want %q", what, text, want)
		}
		_, err := decodeHead(text, 1)
		if refused := errors.Is(err, ErrVersion); refused != (tt.min > 1) {
			t.Errorf("%s: a reader of version 1 says %v", what, err)
		}
		if want := "wants a reader of version 2 or later, this is 1: use plugin, agent and enipoolctl of one release"; err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a reader of version 1 says %v, want %q", what, err, want)
		}
	}
}

// With the last reservation the demand for a newer reader goes: a release can be taken back then.
func TestReplaceWritesTheOldestVersionThatWillDo(t *testing.T) {
	c := newCache(t, small())
	before := bytesOf(t, c.Path)
	put(t, c, kept())
	if !bytes.HasPrefix(bytesOf(t, c.Path), []byte(magic+" 2 min 2 ")) {
		t.Errorf("the head is %q", textOf(bytesOf(t, c.Path)))
	}
	put(t, c, small())
	if lines := changedLines(before, bytesOf(t, c.Path)); len(lines) != 1 || !bytes.HasPrefix(bytesOf(t, c.Path), []byte(magic+" 1 min 1 ")) {
		t.Errorf("lines %v changed, more than the generation; the head is %q", lines, textOf(bytesOf(t, c.Path)))
	}
}

// An old plugin would read on if a line alone said it.
func TestTheFirstReservationNeedsANewHead(t *testing.T) {
	c := newCache(t, small())
	before := bytesOf(t, c.Path)
	reserve := func(s *ipam.State) {
		s.Reserve(map[netip.Addr]eni.Reservation{s.Addresses[2].Addr: {Topology: "db"}}, time.Hour)
	}
	if err := c.Update(t.Context(), func(s *ipam.State) error { reserve(s); return nil }); !errors.Is(err, errOldHead) || !bytes.Equal(before, bytesOf(t, c.Path)) {
		t.Errorf("%v; want a refusal and the file as it was", err)
	}
	put(t, c, kept())
	if err := c.Update(t.Context(), func(s *ipam.State) error { reserve(s); return nil }); err != nil {
		t.Error(err)
	}
}

func TestAClaimIsOneLineAndEndsAsOne(t *testing.T) {
	c := newCache(t, kept())
	before := bytesOf(t, c.Path)
	o := eni.Owner{Key: key("new"), Namespace: "db", Pod: "db-0", UID: "u-0"}
	err := c.For(o.Key).Update(t.Context(), func(s *ipam.State) error {
		l, err := s.AssignReserved(o, "db", "", time.Hour)
		if err == nil && (len(l.Addresses) != 1 || l.Addresses[0].Addr.String() != "10.0.0.31") {
			t.Errorf("claimed %v", l.Addresses)
		}
		return err
	})
	if lines := changedLines(before, bytesOf(t, c.Path)); err != nil || len(lines) != 1 {
		t.Fatalf("lines %v changed, %v", lines, err)
	}
	if err := c.For(o.Key).Update(t.Context(), func(s *ipam.State) error { s.Free(o.Key, 0); return nil }); err != nil {
		t.Fatal(err)
	}
	if lines := changedLines(before, bytesOf(t, c.Path)); lines != nil {
		t.Errorf("lines %v are not as before", lines)
	}
}

// What another sandbox of the pod has is what tells an ADD that it must wait.
func TestAnADDSeesWhatAnotherSandboxClaimed(t *testing.T) {
	c := newCache(t, kept())
	o := eni.Owner{Key: key("new"), Namespace: "db", Pod: "db-1", UID: "u-1"}
	err := c.For(o.Key).Update(t.Context(), func(s *ipam.State) error {
		_, err := s.AssignReserved(o, "", "", time.Hour)
		return err
	})
	if want := "pod db/db-1 waits for its address: its earlier sandbox 3f2a has 10.0.0.34 until the runtime ends that"; fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A name that is cut would be another pod's.
func TestNamesThatIdentifyAreNotCut(t *testing.T) {
	long := strings.Repeat("n", 253)
	for what, a := range map[string]eni.Address{
		"reserved": {State: eni.Reserved, Reservation: &eni.Reservation{Topology: long, Namespace: "db", Pod: long}},
		"claimed":  {State: eni.Used, Owner: &eni.Owner{Key: key("a"), Namespace: long, Pod: long}, Reservation: &eni.Reservation{Namespace: long, Pod: long}},
	} {
		a.Addr = netip.MustParseAddr("10.0.0.1")
		if _, err := encodeAddress(&a); !errors.Is(err, ErrOwnerTooLong) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a := eni.Address{Addr: netip.MustParseAddr("10.0.0.1"), State: eni.Used, Owner: &eni.Owner{Key: key("a"), Namespace: long, Pod: long, UID: long},
		Reservation: &eni.Reservation{Topology: strings.Repeat("t", 200)}}
	var got eni.Address
	text, err := encodeAddress(&a)
	if err != nil || decodeAddress([]byte(text), &got) != nil || got.Owner.Key != a.Owner.Key || *got.Reservation != *a.Reservation {
		t.Errorf("for nobody: %q, %v", text, err)
	}
}

// No pod may get what a damaged line may have kept for one, until that is said again.
func TestWhatADamagedLineMayHaveKeptStaysReserved(t *testing.T) {
	for what, tt := range map[string]struct {
		line int // of kept's addresses
		text string
		want string
	}{
		"reserved":                {6, "10.0.0.31 1 reserved 0.000 db db u-X db-0", "10.0.0.31 1 reserved {Topology:db Namespace: Pod: UID:}"},
		"claimed":                 {9, "10.0.0.34 1 claimed 3.000 veth pods 3f2X eth0", "10.0.0.34 1 reserved {Topology: Namespace: Pod: UID:}"},
		"a word that says nobody": {6, "10.0.0.31 1 reseXved 0.000 db db u-0 db-0", "10.0.0.31 1 reserved {Topology: Namespace: Pod: UID:}"},
		"withdrawn":               {12, "10.0.0.37 1 releasing 6.000 db db u-X db-4", "10.0.0.37 1 reserved {Topology:db Namespace: Pod: UID:}"},
		"releasing":               {4, "10.0.0.22 1 releasing 2.X00", "10.0.0.22 1 cooling"},
		"free":                    {2, "10.0.0.13 0 free 1.000 x", "10.0.0.13 0 cooling"},
	} {
		file := mustEncode(t, kept())
		first := len(file)/lineSize - len(kept().Addresses)
		copy(file[(first+tt.line)*lineSize:], fmt.Sprintf("%-*s", textSize, tt.text)) // with the sum of before
		old, err := decodeBytes(file)
		if err != nil || len(old.Damaged) != 1 {
			t.Fatalf("%s: %v, %v", what, err, old)
		}
		want := ipam.State{Settings: small().Settings, ENIs: small().ENIs}
		for _, a := range kept().Addresses {
			want.Addresses = append(want.Addresses, eni.Address{Addr: a.Addr, ENI: a.ENI})
		}
		next, err := ipam.Merge(&old.State, want, nil, time.Hour)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		next.Distrust(&old.State, time.Hour)
		if err := next.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		a := next.Addresses[tt.line]
		got := fmt.Sprint(a.Addr, " ", a.ENI, " ", a.State)
		if a.Reservation != nil {
			got += fmt.Sprintf(" %+v", *a.Reservation)
		}
		if got != tt.want {
			t.Errorf("%s: after a rebuild %s, want %s", what, got, tt.want)
		}
	}
}
