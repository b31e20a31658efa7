package podrecord

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/filelock"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const head = magic + " 1 min 1"

func sample(container string) Record {
	at := netip.MustParseAddr
	return Record{Key: eni.Key{Network: "pods", Container: container, IfName: "eth0"}, Pod: "a \"quoted\"\nname", Firewall: ipam.Iptables, Turn: 2,
		Addrs: []netip.Addr{at("10.0.0.5"), at("fd00::5")}, Extras: netconf.Extras{
			Ports: []netconf.HostPort{{Transport: netconf.TCP, Port: 80, PodPort: 8080}, {Transport: netconf.SCTP, Host: at("::"), Port: 1, PodPort: 65535},
				{Transport: netconf.UDP, Host: at("10.0.0.1"), Port: 53, PodPort: 53}},
			Limits: netconf.Limits{Egress: netconf.Limit{Rate: 1e6, Burst: 80000}}}}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestARecordReadsBack(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	a, b := sample("a"), Record{Key: eni.Key{Network: "pods", Container: "b", IfName: "eth0"}}
	if _, found, err := f.Read(a.Key); found || err != nil {
		t.Errorf("without a folder: found %v, %v", found, err)
	}
	for _, r := range []Record{b, a, a} {
		if err := f.Write(r); err != nil {
			t.Fatal(err)
		}
		got, found, err := f.Read(r.Key)
		if !found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
		same(t, r, got)
	}
	list, err := f.All()
	if err != nil || len(list) != 2 {
		t.Errorf("all: %v, %v", list, err)
	}
	for range 2 {
		if err := f.Remove(a.Key); err != nil {
			t.Fatal(err)
		}
	}
	list, err = f.All()
	same(t, []Record{b}, list)
	if err != nil {
		t.Error(err)
	}
}

func TestWhatACrashLeavesHalfWrittenIsNoRecord(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	a := sample("a")
	if err := f.Write(a); err != nil {
		t.Fatal(err)
	}
	half := f.pathOf(eni.Key{Container: "b"}) + temporary
	if err := os.WriteFile(half, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := f.All()
	same(t, []Record{a}, list)
	if _, gone := os.Stat(half); err != nil || !os.IsNotExist(gone) {
		t.Errorf("all: %v; the half record: %v", err, gone)
	}
}

func TestADamagedRecordIsToldAndHidesNoOther(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	whole := string(encodeRecord(sample("a")))
	for _, text := range []string{"", "x", whole[:len(whole)-5], head + "\nend\n", head + "\nowner a b\nend\n", head + "\nowner a b c\nport tcp 0 to 1\nend\n",
		head + "\nowner a b c\naddress here\nend\n", head + "\nowner a b c\nport icmp 1 to 1\nend\n", head + "\nowner a b c\nport tcp 1 to 1 on x\nend\n",
		head + "\nowner a b c\nfirewall none\nend\n", head + "\nowner a b c\nturn first\nend\n", head + "\nowner a b c\nnew thing\nend\n", head + "\nowner a b c\negress 1 x\nend\n"} {
		for _, r := range []Record{sample("a"), sample("b")} {
			if err := f.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(f.pathOf(sample("a").Key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Read(sample("a").Key); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: error %v", text, err)
		}
		list, err := f.All()
		if !errors.Is(err, ErrDamaged) || len(list) != 1 {
			t.Errorf("%q: all are %v, %v", text, list, err)
		}
	}
}

// The first writers of version 1 did not say who can read it.
func TestARecordWithoutMinIsOfVersion1(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	want := sample("a")
	if err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	for first, refused := range map[string]error{magic + " 1": nil, magic + " 2": ErrDamaged, magic + " 1 ": ErrDamaged, magic + " 1 mi": ErrDamaged, magic + " ": ErrDamaged} {
		text := strings.Replace(string(encodeRecord(want)), head, first, 1)
		if err := os.WriteFile(f.pathOf(want.Key), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, found, err := f.Read(want.Key)
		if !found || !errors.Is(err, refused) {
			t.Errorf("%q: found %v, %v; want %v", first, found, err, refused)
		}
		if refused == nil {
			same(t, want, got)
		}
	}
}

// A later release adds lines of its own, and says by "min" who can do without them.
func TestARecordOfALaterReleaseIsReadWithoutWhatIsNew(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	want := sample("a")
	if err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	later := strings.Replace(string(encodeRecord(want)), "\nend\n", "\nhairpin off\nend\n", 1)
	write := func(first string) {
		t.Helper()
		if err := os.WriteFile(f.pathOf(want.Key), []byte(strings.Replace(later, head, first, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(magic + " 2 min 1 and more")
	got, found, err := f.Read(want.Key)
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	same(t, want, got)
	for first, refused := range map[string]error{magic + " 2 min 2": ErrVersion, magic + " 2 min x": ErrVersion, head: ErrDamaged, magic + " x min 1": ErrDamaged, magic: ErrDamaged} {
		write(first)
		if _, found, err := f.Read(want.Key); !found || !errors.Is(err, refused) || !Unreadable(err) {
			t.Errorf("%q: found %v, %v; want %v", first, found, err, refused)
		}
		if list, err := f.All(); len(list) != 0 || !errors.Is(err, refused) {
			t.Errorf("%q: all are %v, %v; want %v", first, list, err, refused)
		}
	}
}

func TestTheRecordOfAnotherAttachmentWithTheSameNameIsNotOurs(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	a := sample("a")
	if err := f.Write(a); err != nil {
		t.Fatal(err)
	}
	other := eni.Key{Network: "pods", Container: "other", IfName: "eth0"}
	if err := os.Rename(f.pathOf(a.Key), f.pathOf(other)); err != nil {
		t.Fatal(err)
	}
	if _, found, err := f.Read(other); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestOneHoldsTheLockAtATime(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	first, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan *Lock)
	go func() {
		l, err := f.Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		second <- l
	}()
	select {
	case <-second:
		t.Error("two hold the lock")
	default:
	}
	first.Unlock()
	(<-second).Unlock()
}

func TestTheWaitForTheLockIsBoundedByOneHolder(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	first, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.lockWithin(t.Context(), 20*time.Millisecond, time.Hour)
	if busy := new(filelock.BusyError); !errors.As(err, &busy) || busy.Path != filepath.Join(f.Path, "lock") {
		t.Errorf("a holder that stays: %v", err)
	}
	turns := []unix.Timespec{turnOf(first.fd)}
	for range 3 {
		time.Sleep(20 * time.Millisecond) // the clock of files is coarse
		first.Unlock()
		if first, err = f.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turnOf(first.fd))
	}
	first.Unlock()
	p := patience{turn: turns[0], queue: time.Minute}
	for i, turn := range turns[1:] {
		if p.givesUp(time.Duration(i)*time.Second, turn) {
			t.Errorf("gave up at turn %d of a queue that moves", i)
		}
	}
	if !p.givesUp(time.Second, turns[3]) || !p.givesUp(time.Minute, turns[0]) {
		t.Error("one holder, or an endless queue, is waited for")
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	l, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	lock := filepath.Join(f.Path, "lock")
	want := fmt.Sprintf("lock %s: held by process %d (", lock, os.Getpid())
	if _, err := f.Lock(gone); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), fmt.Sprintf("; if it hangs, end it: kill %d", os.Getpid())) {
		t.Errorf("a lock that is held: %v", err)
	}
	file := f.pathOf(sample("a").Key)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(sample("a")); err == nil || !strings.Contains(err.Error(), " to "+file+": ") {
		t.Errorf("a record that can't be written: %v", err)
	}
}

// Who only looks is in nobody's way: a record in the making is left to its writer.
func TestToLookAtRecordsChangesNothing(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	if list, err := f.AllUnlocked(); len(list) > 0 || err != nil {
		t.Errorf("without a folder: %v, %v", list, err)
	}
	a := sample("a")
	if err := f.Write(a); err != nil {
		t.Fatal(err)
	}
	half, damaged := f.pathOf(eni.Key{Container: "b"})+temporary, f.pathOf(eni.Key{Container: "c"})
	for _, name := range []string{half, damaged} {
		if err := os.WriteFile(name, []byte(head), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.AllUnlocked()
	same(t, []Record{a}, list)
	if !Unreadable(err) || !strings.Contains(err.Error(), damaged) {
		t.Errorf("the damaged one: %v", err)
	}
	if _, err := os.Stat(half); err != nil {
		t.Errorf("the record in the making: %v", err)
	}
}

func TestAFolderAmongRecordsIsNone(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	a := sample("a")
	if err := f.Write(a); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.pathOf(sample("b").Key), 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := f.All()
	if err != nil {
		t.Error(err)
	}
	same(t, []Record{a}, list)
}

func TestARecordThatCantBeRemovedIsNamedByItsPath(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "pods")}
	k := sample("a").Key
	if err := os.MkdirAll(f.pathOf(k), 0o700); err != nil { // a folder is not unlinked
		t.Fatal(err)
	}
	if err := f.Remove(k); err == nil || !strings.Contains(err.Error(), " at "+f.pathOf(k)+": ") {
		t.Errorf("error %v", err)
	}
}
