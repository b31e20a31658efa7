package nfset_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { nettest.Main(m) }

var table = nfset.Table{Family: unix.NFPROTO_INET, Name: "try"}

// newTable makes a table with a set, a verdict map and a map of concatenations.
func newTable(t *testing.T) {
	t.Helper()
	nettest.Need(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft is not installed")
	}
	nettest.Run(t, "nft", `add table inet try; add chain inet try out1; add chain inet try out2
		add set inet try seen { type ipv6_addr; }
		add map inet try ways { type ipv4_addr : verdict; }
		add map inet try ports { type inet_proto . inet_service : ipv4_addr . inet_service; }`)
	t.Cleanup(func() { nettest.Run(t, "nft", "delete table inet try") })
}

func list(t *testing.T, set string) string {
	t.Helper()
	return strings.Join(strings.Fields(nettest.Run(t, "nft", "list map inet try "+set)), " ")
}

func way(last byte, chain string) nfset.Change {
	return nfset.Change{Set: "ways", Element: nfset.Element{Key: []byte{10, 0, 0, last}, Verdict: &nfset.Verdict{Code: unix.NFT_GOTO, Chain: chain}}}
}

func port(number, last byte) nfset.Change {
	return nfset.Change{Op: nfset.AddNew, Set: "ports", Element: nfset.Element{
		Key: []byte{unix.IPPROTO_TCP, 0, 0, 0, 0, number, 0, 0}, Value: []byte{10, 0, 0, last, 0x1f, 0x90, 0, 0}}}
}

func TestNftListsWhatWasAddedAndNotWhatWasDeleted(t *testing.T) {
	newTable(t)
	if err := table.Commit(way(1, "out1"), way(2, "out2"), port(80, 1), port(81, 2)); err != nil {
		t.Fatal(err)
	}
	if got, want := list(t, "ways"), "elements = { 10.0.0.1 : goto out1, 10.0.0.2 : goto out2 }"; !strings.Contains(got, want) {
		t.Errorf("nft lists %s, want %s", got, want)
	}
	if got, want := list(t, "ports"), "tcp . 80 : 10.0.0.1 . 8080"; !strings.Contains(got, want) {
		t.Errorf("nft lists %s, want %s", got, want)
	}
	gone := port(80, 1)
	gone.Op = nfset.Delete
	if err := table.Commit(gone); err != nil {
		t.Fatal(err)
	}
	if got := list(t, "ports"); strings.Contains(got, "tcp . 80") || !strings.Contains(got, "tcp . 81") {
		t.Errorf("after the deletion nft lists %s", got)
	}
}

func TestGetReturnsOneElementWithItsVerdictOrValue(t *testing.T) {
	newTable(t)
	nettest.Run(t, "nft", `add element inet try ways { 10.0.0.1 : goto out1, 10.0.0.2 : goto out2, 10.0.0.3 : drop }
		add element inet try ports { tcp . 80 : 10.0.0.1 . 8080, udp . 80 : 10.0.0.2 . 53 }
		add element inet try seen { fd00::1 }`)
	blocked := nfset.Element{Key: []byte{10, 0, 0, 3}, Verdict: &nfset.Verdict{}}
	six := nfset.Element{Key: append([]byte{0xfd}, append(make([]byte, 14), 1)...)}
	for set, want := range map[string]nfset.Element{"ways": way(2, "out2").Element, "ports": port(80, 1).Element, "seen": six} {
		got, found, err := table.Get(set, want.Key)
		if err != nil || !found || !got.Equal(want) {
			t.Errorf("get of %s: found %v, %v\n%s", set, found, err, cmp.Diff(want, got))
		}
	}
	if got, found, err := table.Get("ways", blocked.Key); err != nil || !found || !got.Equal(blocked) {
		t.Errorf("get of a drop: %v %v, %v", got, found, err)
	}
}

func TestGetOfWhatIsNotThereIsNoError(t *testing.T) {
	newTable(t)
	nettest.Run(t, "nft", "add element inet try ways { 10.0.0.1 : goto out1 }")
	other := nfset.Table{Family: unix.NFPROTO_INET, Name: "other"}
	for name, get := range map[string]func() (nfset.Element, bool, error){
		"no such element": func() (nfset.Element, bool, error) { return table.Get("ways", []byte{10, 0, 0, 9}) },
		"no such map":     func() (nfset.Element, bool, error) { return table.Get("roads", []byte{10, 0, 0, 1}) },
		"no such table":   func() (nfset.Element, bool, error) { return other.Get("ways", []byte{10, 0, 0, 1}) },
	} {
		if e, found, err := get(); found || err != nil {
			t.Errorf("%s: %v %v, %v; want nothing and no error", name, e, found, err)
		}
	}
}

// Thousands are asked for at once; each place has its own answer.
func TestGetEachTellsOfEachPlaceInOrder(t *testing.T) {
	newTable(t)
	var changes []nfset.Change
	var places []nfset.Place
	key := func(i int) []byte { return []byte{unix.IPPROTO_TCP, 0, 0, 0, byte(i >> 8), byte(i), 0, 0} }
	for i := 1; i <= 1000; i++ {
		if i%3 != 0 {
			changes = append(changes, nfset.Change{Set: "ports", Element: nfset.Element{Key: key(i), Value: []byte{10, 0, byte(i >> 8), byte(i), 0, 80, 0, 0}}})
		}
		places = append(places, nfset.Place{Set: "ports", Key: key(i)})
	}
	places = append(places, nfset.Place{Set: "roads", Key: []byte{1}})
	if err := table.Commit(changes...); err != nil {
		t.Fatal(err)
	}
	c, err := table.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	next := 0
	err = c.GetEach(places, func(at int, e nfset.Element, found bool) {
		i := at + 1
		if at != next || found != (i%3 != 0 && i <= 1000) || found && (string(e.Key) != string(key(i)) || e.Value[3] != byte(i)) {
			t.Errorf("place %d, expected %d: %v %x", at, next, found, e.Key)
		}
		next++
	})
	if err != nil || next != len(places) {
		t.Errorf("%d of %d places, %v", next, len(places), err)
	}
	if err := c.GetEach([]nfset.Place{{Set: "ports", Key: key(1)}, {Set: "ports", Key: []byte{1, 2}}}, func(int, nfset.Element, bool) {}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a key that does not fit: %v", err)
	}
	if err := c.GetEach(nil, nil); err != nil {
		t.Error(err)
	}
}

func TestChangesAreAllMadeOrNone(t *testing.T) {
	newTable(t)
	nettest.Run(t, "nft", "add element inet try ports { tcp . 81 : 10.0.0.2 . 8080 }")
	err := table.Commit(port(80, 1), port(81, 3), way(1, "nowhere"))
	var refused *nfset.ChangeError
	if !errors.Is(err, unix.EEXIST) || !errors.Is(err, unix.ENOENT) || !errors.As(err, &refused) {
		t.Fatalf("error %v; want EEXIST for the port and ENOENT for the chain", err)
	}
	if diff := cmp.Diff(port(81, 3).Element, refused.Change.Element); diff != "" {
		t.Errorf("the error is of another change:\n%s", diff)
	}
	if got := list(t, "ports"); strings.Contains(got, "tcp . 80") {
		t.Errorf("half of a refused transaction is there: %s", got)
	}
}

func TestAddingTheSameAgainIsFineAndAnotherValueIsRefused(t *testing.T) {
	newTable(t)
	for range 2 {
		if err := table.Commit(way(1, "out1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Commit(way(1, "out2")); !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EEXIST) {
		t.Errorf("another verdict for the key: %v, want it refused", err)
	}
	again := way(1, "out1")
	again.Op = nfset.Delete
	if err := table.Commit(again, way(1, "out2")); err != nil {
		t.Errorf("replace in one transaction: %v", err)
	}
	if got := list(t, "ways"); !strings.Contains(got, "10.0.0.1 : goto out2") {
		t.Errorf("after the replacement nft lists %s", got)
	}
}

func TestDeletingWhatIsNotThereHarmsNotTheRest(t *testing.T) {
	newTable(t)
	nettest.Run(t, "nft", "add element inet try ways { 10.0.0.1 : goto out1 }")
	del := func(c nfset.Change, op nfset.Op) nfset.Change { c.Op = op; return c }
	if err := table.Commit(del(way(9, ""), nfset.Delete)); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a deletion that must succeed: %v, want ENOENT", err)
	}
	elsewhere := nfset.Change{Op: nfset.DeleteIfThere, Set: "roads", Element: way(1, "").Element}
	if err := table.Commit(del(way(9, ""), nfset.DeleteIfThere), del(way(1, ""), nfset.DeleteIfThere), elsewhere, port(80, 1)); err != nil {
		t.Fatal(err)
	}
	if got := list(t, "ways"); strings.Contains(got, "10.0.0.1") {
		t.Errorf("the element that was there is still: %s", got)
	}
	if got := list(t, "ports"); !strings.Contains(got, "tcp . 80") {
		t.Errorf("the addition beside it was lost: %s", got)
	}
	if err := (nfset.Table{Family: unix.NFPROTO_INET, Name: "other"}).Commit(elsewhere, del(way(9, ""), nfset.DeleteIfThere)); err != nil {
		t.Errorf("nothing of it there: %v", err)
	}
}

func TestManyChangesAtOnce(t *testing.T) {
	newTable(t)
	var changes []nfset.Change
	for i := range 250 {
		changes = append(changes, way(byte(i), "out1"))
	}
	if err := table.Commit(changes...); err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		changes[i].Op = nfset.AddNew
	}
	if err := table.Commit(changes...); !errors.Is(err, unix.EEXIST) {
		t.Errorf("250 refusals: %v, want EEXIST", err)
	}
	for i := range changes {
		changes[i].Op = nfset.DeleteIfThere
	}
	if err := table.Commit(changes...); err != nil {
		t.Fatal(err)
	}
	if got := list(t, "ways"); strings.Contains(got, "10.0.0.") {
		t.Errorf("left over: %s", got)
	}
}

// A pod may ask for thousands of ports: all of them are one transaction, and each that is
// refused is named.
func TestThousandsOfChangesAreOneTransaction(t *testing.T) {
	newTable(t)
	const many = 10000
	var changes []nfset.Change
	for i := range many {
		c := port(0, 1)
		c.Element.Key = []byte{unix.IPPROTO_TCP, 0, 0, 0, byte(i >> 8), byte(i), 0, 0}
		changes = append(changes, c)
	}
	if err := table.Commit(changes...); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(list(t, "ports"), "tcp . "); n != many {
		t.Errorf("%d elements, want %d", n, many)
	}
	err := table.Commit(changes...)
	if n := strings.Count(fmt.Sprint(err), "\n") + 1; !errors.Is(err, unix.EEXIST) || n != many {
		t.Errorf("%d refusals, want one for each of %d", n, many)
	}
	for i := range changes {
		changes[i].Op = nfset.DeleteIfThere
	}
	for range 2 {
		if err := table.Commit(changes...); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(list(t, "ports"), "tcp . "); n != 0 {
		t.Errorf("%d elements are left", n)
	}
}
