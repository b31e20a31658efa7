package nodecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func announce(t testing.TB, c Cache, o eni.Owner, until time.Duration) *Announcement {
	t.Helper()
	w, err := c.Announce(o, until)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// waiting lists the containers of the pending ADDs.
func waiting(t testing.TB, c Cache, now time.Duration) string {
	t.Helper()
	list, err := c.PendingADDs(now)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, w := range list {
		names = append(names, w.Owner.Container)
		if i > 0 && list[i-1].Since > w.Since {
			t.Errorf("not in order: %+v", list)
		}
	}
	return strings.Join(names, " ")
}

// pendingFile returns the path of the only pending ADD's file.
func pendingFile(t testing.TB, c Cache) string {
	t.Helper()
	names := ls(t, c.pendingDir())
	if len(names) != 1 {
		t.Fatalf("files %v", names)
	}
	return filepath.Join(c.pendingDir(), names[0])
}

func TestPendingADDsAreSeenUntilTheyAreDone(t *testing.T) {
	c := newCache(t, pool(1))
	if got := waiting(t, c, 0); got != "" {
		t.Errorf("nobody waits, but %s", got)
	}
	until := SinceBoot() + time.Minute
	before := SinceBoot()
	web := announce(t, c, owner("web"), until)
	db := announce(t, c, owner("db"), until)
	list, err := c.PendingADDs(SinceBoot())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	got := list[slices.IndexFunc(list, func(w PendingADD) bool { return w.Owner.Container == "web" })]
	if got.Since < before || got.Since > SinceBoot()+time.Millisecond || got.Until < until || got.Until > until+time.Millisecond {
		t.Errorf("since %s until %s", got.Since, got.Until)
	}
	want := PendingADD{Owner: eni.Owner{Key: key("web"), Namespace: "default", Pod: "web", UID: "u-web"}, PID: os.Getpid(), Since: got.Since, Until: got.Until}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	web.Done()
	if got := waiting(t, c, SinceBoot()); got != "db" {
		t.Errorf("%q wait, want db", got)
	}
	db.Done()
	db.Done()
	if got := ls(t, c.pendingDir()); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}
	var none *Announcement
	none.Done()
}

func TestWhateverNamesAPendingADDHasComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := owners().Draw(t, "owner")
		w := PendingADD{Owner: eni.Owner{Key: o.Key, Namespace: o.Namespace, Pod: o.Pod, UID: o.UID}, PID: rapid.IntRange(0, 1<<22).Draw(t, "pid"),
			Since: time.Duration(rapid.IntRange(0, 1<<40).Draw(t, "since")) * time.Millisecond,
			Until: time.Duration(rapid.IntRange(0, 1<<40).Draw(t, "until")) * time.Millisecond, Failed: rapid.Bool().Draw(t, "failed")}
		got, boot, ok := decodePending([]byte(w.encode("some-boot")))
		if diff := cmp.Diff(w, got); diff != "" || !ok || boot != "some-boot" {
			t.Errorf("%t, boot %q, %s", ok, boot, diff)
		}
	})
}

func TestThePendingADDInTheDesignIsReal(t *testing.T) {
	_, text, _ := strings.Cut(string(bytesOf(t, "DESIGN.md")), "\n`"+pendingMagic)
	line, _, _ := strings.Cut(pendingMagic+text, "`")
	if w, boot, ok := decodePending([]byte(line + "\n")); !ok || w.encode(boot) != line+"\n" {
		t.Errorf("%q is %+v", line, w)
	}
}

func TestAnADDThatFailedIsToldFromOneThatWaits(t *testing.T) {
	c := newCache(t, pool(1))
	until := SinceBoot() + time.Minute
	announce(t, c, owner("web"), until)
	if err := c.AnnounceFailed(owner("db"), until); err != nil {
		t.Fatal(err)
	}
	list, err := c.PendingADDs(SinceBoot())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, w := range list {
		if want := w.Owner.Container == "db"; w.Failed != want {
			t.Errorf("%s failed: %t, want %t", w.Owner.Container, w.Failed, want)
		}
	}
}

// A kubelet that tries again makes a sandbox with another container id.
func TestAPodThatTriesAgainCountsOnce(t *testing.T) {
	with := func(container, namespace, pod, uid string) eni.Owner {
		return eni.Owner{Key: key(container), Namespace: namespace, Pod: pod, UID: uid}
	}
	second := with("a", "default", "web", "u-1")
	second.IfName = "net1"
	other := with("a", "default", "web", "u-1")
	other.Network = "storage"
	for _, tt := range []struct {
		name string
		a, b eni.Owner
		want string
	}{
		{"one uid", with("a", "default", "web", "u-1"), with("b", "default", "web", "u-1"), "b"},
		{"two uids of one name", with("a", "default", "web", "u-1"), with("b", "default", "web", "u-2"), "a b"},
		{"no uid, one name", with("a", "default", "web", ""), with("b", "default", "web", ""), "b"},
		{"no uid, two namespaces", with("a", "default", "web", ""), with("b", "other", "web", ""), "a b"},
		{"no names at all", with("a", "", "", ""), with("b", "", "", ""), "a b"},
		{"one container twice", with("a", "", "", ""), with("a", "", "", ""), "a"},
		{"two interfaces of one pod", with("a", "default", "web", "u-1"), second, "a a"},
		{"two networks of one pod", with("a", "default", "web", "u-1"), other, "a a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, pool(1))
			until := SinceBoot() + time.Minute
			announce(t, c, tt.a, until)
			later(t, c)
			announce(t, c, tt.b, until)
			if got := waiting(t, c, SinceBoot()); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// later makes the only pending ADD one that began a second ago.
func later(t *testing.T, c Cache) {
	t.Helper()
	path := pendingFile(t, c)
	boot, _ := BootID()
	w, _, ok := decodePending(bytesOf(t, path))
	if !ok {
		t.Fatal("can't be read")
	}
	w.Since = max(w.Since-time.Second, 0)
	write(t, path, []byte(w.encode(boot)))
}

// A pending ADD that is killed leaves its file.
func TestWhatNobodyWaitsForAnyMoreIsRemoved(t *testing.T) {
	now := SinceBoot()
	damage := func(change func(string) string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, []byte(change(string(bytesOf(t, path))))) }
	}
	for _, tt := range []struct {
		name   string
		now    time.Duration
		change func(t *testing.T, path string)
		want   string
		stays  bool
	}{
		{"before its deadline", now, nil, "web", true},
		{"within its grace", now + time.Minute + time.Second, nil, "web", true},
		{"past its grace", now + time.Minute + time.Second + 2*time.Millisecond, nil, "", false},
		{"of another boot", now, damage(func(s string) string {
			f := strings.Fields(s)
			f[2] = "6f2c1f0e-7c0b-4f37-9a52-0b8f3a5f2d10"
			return strings.Join(f, " ") + "\n"
		}), "", false},
		{"of a newer writer that has more to say", now, damage(func(s string) string { return strings.TrimSpace(s) + " more\n" }), "web", true},
		{"of a newer format", now, damage(func(s string) string { return strings.Replace(s, "waiter 1", "waiter 2", 1) }), "", false},
		{"cut", now, damage(func(s string) string { return s[:len(s)-5] }), "", false},
		{"empty", now, damage(func(string) string { return "" }), "", false},
		{"huge", now, damage(func(s string) string { return strings.TrimSpace(s) + strings.Repeat(" x", maxPending) + "\n" }), "", false},
		{"with a time of no sense", now, damage(func(s string) string { return strings.Replace(s, ".", ",", 2) }), "", false},
		{"just being written", now, func(t *testing.T, path string) { rename(t, path, path+".7.new") }, "", true},
		{"long being written", now, func(t *testing.T, path string) {
			rename(t, path, path+".7.new")
			old := time.Now().Add(-time.Hour)
			if err := os.Chtimes(path+".7.new", old, old); err != nil {
				t.Fatal(err)
			}
		}, "", false},
		{"a folder", now, func(t *testing.T, path string) {
			remove(t, path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "", true},
		{"a FIFO", now, func(t *testing.T, path string) { remove(t, path); fifo(t, path) }, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, pool(1))
			announce(t, c, owner("web"), now+time.Minute)
			if tt.change != nil {
				tt.change(t, pendingFile(t, c))
			}
			for range 2 {
				if got := waiting(t, c, tt.now); got != tt.want {
					t.Errorf("%q wait, want %q", got, tt.want)
				}
			}
			if left := ls(t, c.pendingDir()); (len(left) == 1) != tt.stays {
				t.Errorf("left over: %v, want it to stay: %t", left, tt.stays)
			}
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestGarbageIsNoPendingADD(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		boot, at := "b", 1000*time.Hour
		text := PendingADD{Owner: owner("web"), PID: 7, Since: at, Until: at}.encode(boot)
		i := rapid.IntRange(0, len(text)).Draw(t, "from")
		j := rapid.IntRange(i, len(text)).Draw(t, "to")
		damaged := text[:i] + rapid.StringMatching(`[ 0-9.w\n%-]{0,6}`).Draw(t, "by") + text[j:]
		if w, _, ok := decodePending([]byte(damaged)); ok && (w.Since < 0 || w.Until < 0) {
			t.Fatalf("%q is %+v", damaged, w)
		}
		decodePending(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	})
}

func TestALaterAnnouncementStaysWhenTheEarlierIsDone(t *testing.T) {
	c := newCache(t, pool(1))
	first := announce(t, c, owner("web"), SinceBoot()+time.Minute)
	second := announce(t, c, owner("web"), SinceBoot()+time.Hour)
	first.Done()
	if got := waiting(t, c, SinceBoot()); got != "web" {
		t.Errorf("%q wait, want web", got)
	}
	second.Done()
	if got := waiting(t, c, SinceBoot()); got != "" {
		t.Errorf("%q wait, want none", got)
	}
}

func TestAnAnnouncementThatCanNotBeWrittenSaysWhy(t *testing.T) {
	long := owner("web")
	long.Container = strings.Repeat("x", maxPending)
	c := newCache(t, pool(1))
	if _, err := c.Announce(long, 0); !errors.Is(err, ErrOwnerTooLong) {
		t.Errorf("long names: %v", err)
	}
	write(t, c.pendingDir(), nil)
	if _, err := c.Announce(owner("web"), 0); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := c.PendingADDs(0); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := (Cache{Path: filepath.Join(t.TempDir(), "none", "node.cache")}).Announce(owner("web"), 0); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no cache: %v", err)
	}
}

func TestAFullDiskLeavesNoHalfAnnouncement(t *testing.T) {
	dir := tmpfs(t, "size=64k")
	c := Cache{Path: filepath.Join(dir, "node.cache")}
	put(t, c, small())
	announce(t, c, owner("db"), SinceBoot()+time.Minute)
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	_, err := c.Announce(owner("web"), SinceBoot()+time.Minute)
	if !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), "announce pods/web/eth0: ") {
		t.Errorf("got %v", err)
	}
	if got := waiting(t, c, SinceBoot()); got != "db" || len(ls(t, c.pendingDir())) != 1 {
		t.Errorf("%q wait, files %v", got, ls(t, c.pendingDir()))
	}
}

// TestManyComeAndGoAtOnce: one who looks meanwhile sees whole ones only.
func TestManyComeAndGoAtOnce(t *testing.T) {
	c := newCache(t, pool(1))
	until := SinceBoot() + time.Hour
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 50 {
				w, err := c.Announce(owner(fmt.Sprint("pod-", i, "-", k)), until)
				if err != nil {
					t.Error(err)
				}
				w.Done()
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		list, err := c.PendingADDs(SinceBoot())
		if err != nil || len(list) > 8 {
			t.Fatalf("%d wait, %v", len(list), err)
		}
	}
	if left := ls(t, c.pendingDir()); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}
