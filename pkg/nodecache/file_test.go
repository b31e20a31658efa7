package nodecache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func TestUpdateChangesNothingButTheTouchedLines(t *testing.T) {
	c := newCache(t, small())
	before, at := bytesOf(t, c.Path), inode(t, c.Path)
	for _, tt := range []struct {
		name   string
		change func(*ipam.State) error
		lines  []int
	}{
		{"look", func(*ipam.State) error { return nil }, nil},
		{"assign", func(s *ipam.State) error { _, err := s.AssignPod(owner("new"), "", SinceBoot()); return err }, []int{15}},
		{"release two", func(s *ipam.State) error {
			s.FreeIf(func(a eni.Address) bool { return a.Owner.Pod != "new" }, SinceBoot())
			return nil
		}, []int{13, 16}},
		{"assign and undo", func(s *ipam.State) error {
			l, err := s.AssignPod(owner("again"), "", SinceBoot())
			s.UndoLease(l)
			return err
		}, nil},
	} {
		if err := c.Update(t.Context(), tt.change); err != nil {
			t.Fatal(err)
		}
		after := bytesOf(t, c.Path)
		if diff := cmp.Diff(tt.lines, changedLines(before, after)); diff != "" {
			t.Errorf("%s: lines changed: %s", tt.name, diff)
		}
		before = after
	}
	if inode(t, c.Path) != at {
		t.Error("it is another file now")
	}
}

func TestAnUpdateThatFailsWritesNothing(t *testing.T) {
	c := newCache(t, small())
	before, mine := bytesOf(t, c.Path), errors.New("mine")
	err := c.Update(t.Context(), func(s *ipam.State) error {
		s.Free(key("web"), SinceBoot())
		return mine
	})
	if err != mine {
		t.Errorf("got %v", err)
	}
	if !bytes.Equal(before, bytesOf(t, c.Path)) {
		t.Error("the file changed")
	}
}

func TestReplaceMakesANewFileOfTheNextGeneration(t *testing.T) {
	c := newCache(t, small())
	at, next := inode(t, c.Path), small()
	next.Addresses = next.Addresses[1:]
	// While the old file is open its inode number can't be given again.
	old, err := os.Open(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	err = c.Replace(t.Context(), func(was *ipam.State, err error) (*ipam.State, error) {
		if diff := diff(small(), was); diff != "" {
			t.Errorf("the old state: %s", diff)
		}
		return next, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if inode(t, c.Path) == at {
		t.Error("it is the same file")
	}
	if diff := diff(next, get(t, c)); diff != "" {
		t.Error(diff)
	}
	if head := strings.Fields(string(bytesOf(t, c.Path)[:lineSize])); head[7] != "2" || head[13] != "5" {
		t.Errorf("head %v, want generation 2 of 5 addresses", head)
	}
	if diff := cmp.Diff([]string{"node.cache", "node.cache.lock"}, ls(t, filepath.Dir(c.Path))); diff != "" {
		t.Error(diff)
	}
}

func ls(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestReplaceRefusesACacheThatContradictsItself(t *testing.T) {
	c := newCache(t, small())
	before := bytesOf(t, c.Path)
	err := c.Replace(t.Context(), func(s *ipam.State, _ error) (*ipam.State, error) {
		s.Addresses[1].Addr = s.Addresses[0].Addr
		return s, nil
	})
	want := "refuse to write a node cache that contradicts itself: address 10.0.0.11: is in the node state twice"
	if diff := cmp.Diff(want, fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(before, bytesOf(t, c.Path)) {
		t.Error("the file changed")
	}
}

func TestReplaceTellsWhyTheOldCacheIsUnusable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, path string)
		want  error
	}{
		{"missing", func(t *testing.T, path string) { remove(t, path) }, ErrMissing},
		{"empty", func(t *testing.T, path string) { write(t, path, nil) }, ErrDamaged},
		{"garbage", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("x"), 3*lineSize)) }, ErrDamaged},
		{"newer", func(t *testing.T, path string) { write(t, path, resum(bytesOf(t, path), 0, magic+" 3 min 3")) }, ErrVersion},
		{"other boot", func(t *testing.T, path string) { write(t, path, mustEncode(t, small())) }, ErrBoot},
		{"a FIFO", func(t *testing.T, path string) { remove(t, path); fifo(t, path) }, ErrDamaged},
		{"huge", func(t *testing.T, path string) {
			if err := os.Truncate(path, maxSize+lineSize); err != nil {
				t.Fatal(err)
			}
		}, ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, small())
			tt.spoil(t, c.Path)
			fn := func(*ipam.State) error { t.Error("a node state was handed out"); return nil }
			if err := c.View(t.Context(), fn); !errors.Is(err, tt.want) || !Unusable(err) {
				t.Errorf("View: %v", err)
			}
			if err := c.Update(t.Context(), fn); !errors.Is(err, tt.want) || !Unusable(err) {
				t.Errorf("Update: %v", err)
			}
			err := c.Replace(t.Context(), func(old *ipam.State, err error) (*ipam.State, error) {
				if old != nil || !errors.Is(err, tt.want) {
					t.Errorf("Replace got %v, %v", old, err)
				}
				return small(), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := diff(small(), get(t, c)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func remove(t testing.TB, path string) {
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path string, file []byte) {
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
}

func fifo(t testing.TB, path string) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderInPlaceOfTheFileIsDamage(t *testing.T) {
	c := newCache(t, small())
	remove(t, c.Path)
	if err := os.Mkdir(c.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context, func(*ipam.State) error) error{"View": c.View, "Update": c.Update} {
		err := call(t.Context(), func(*ipam.State) error { t.Error("a node state was handed out"); return nil })
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Nobody knows what is in it: it is not removed, and nothing is left beside it.
	if err := c.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return small(), nil }); err == nil {
		t.Error("Replace took a folder's place")
	}
	if diff := cmp.Diff([]string{"node.cache", "node.cache.lock"}, ls(t, filepath.Dir(c.Path))); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	c := newCache(t, small())
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	view := func() string {
		err := c.View(t.Context(), func(*ipam.State) error { return nil })
		return strings.ReplaceAll(fmt.Sprint(err), c.Path, "PATH")
	}
	write(t, c.Path, mustEncode(t, small()))
	if diff := cmp.Diff("node cache is of another boot: PATH is of boot 6f2c1f0e, this is "+boot[:8]+
		"; the agent or `enipoolctl pool load` makes a new one", view()); diff != "" {
		t.Error(diff)
	}
	write(t, c.Path, []byte("short"))
	if diff := cmp.Diff("PATH: node cache is damaged: 5 bytes are not whole lines of 512; start the agent, which rebuilds it; running pods are not touched; on a node without an agent: `enipoolctl pool load -f inventory.yaml`", view()); diff != "" {
		t.Error(diff)
	}
	l := flock.New(c.AgentLock(), flock.SetPermissions(0o600)) // as the agent does it
	if got, err := l.TryLock(); !got || err != nil {
		t.Fatalf("%t, %v", got, err)
	}
	want := fmt.Sprintf("PATH: node cache is damaged: 5 bytes are not whole lines of 512; an agent (process %d) rebuilds it within seconds; running pods are not touched", os.Getpid())
	if diff := cmp.Diff(want, view()); diff != "" {
		t.Error(diff)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	remove(t, c.Path)
	missing := "node cache is missing: PATH; no agent has made it, and no agent runs on this node: start it (" + whereAgent + "); `enipool-agent --config FILE --dry-run` says what is wrong with its file; " + byHand
	if diff := cmp.Diff(missing, view()); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Dir(c.Path)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(missing, view()); diff != "" {
		t.Errorf("without a folder: %s", diff)
	}
	if _, err := os.Stat(filepath.Dir(c.Path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a look made the folder: %v", err)
	}
}

func TestTheCacheIsItsOwnersAlone(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o027, 0o077} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			c := Cache{Path: filepath.Join(t.TempDir(), "enipool", "node.cache")}
			old := unix.Umask(mask)
			err := c.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return small(), nil })
			unix.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]string{filepath.Dir(c.Path): "drwx------", c.Path: "-rw-------", c.Path + ".lock": "-rw-------"} {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				if got := info.Mode().String(); got != want {
					t.Errorf("%s is %s, want %s", filepath.Base(path), got, want)
				}
			}
		})
	}
}

func TestALeftoverOfAKilledWriterIsNoHindrance(t *testing.T) {
	c := newCache(t, small())
	if err := os.WriteFile(c.Path+".new", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, c, small())
	info, err := os.Stat(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("the file is %s", info.Mode())
	}
	if diff := cmp.Diff([]string{"node.cache", "node.cache.lock"}, ls(t, filepath.Dir(c.Path))); diff != "" {
		t.Error(diff)
	}
}

// tmpfs mounts a small file system.
func tmpfs(t *testing.T, options string) (dir string) {
	t.Helper()
	nettest.Need(t)
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAReadOnlyFolder(t *testing.T) {
	dir := tmpfs(t, "size=1m")
	c, fresh := Cache{Path: filepath.Join(dir, "node.cache")}, Cache{Path: filepath.Join(dir, "other.cache")}
	put(t, c, small())
	before := bytesOf(t, c.Path)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if diff := diff(small(), get(t, c)); diff != "" {
		t.Errorf("View: %s", diff)
	}
	replace := func(*ipam.State, error) (*ipam.State, error) { return fullCache(3), nil }
	const readOnly = "; file system tmpfs at DIR is mounted read-only: mount -o remount,bind,rw DIR"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{c.Update(t.Context(), func(*ipam.State) error { t.Error("a node state to change was handed out"); return nil }),
			"node cache can't be written: open DIR/node.cache: read-only file system" + readOnly},
		{c.Replace(t.Context(), replace), "node cache can't be written: remove DIR/node.cache.new: read-only file system" + readOnly},
		{fresh.View(t.Context(), func(*ipam.State) error { return nil }), "node cache can't be written: open DIR/other.cache.lock: read-only file system" + readOnly},
		{fresh.Replace(t.Context(), replace), "node cache can't be written: open DIR/other.cache.lock: read-only file system" + readOnly},
	} {
		if !errors.Is(tt.err, unix.EROFS) || Unusable(tt.err) {
			t.Errorf("got %v", tt.err)
		}
		if diff := cmp.Diff(tt.want, strings.ReplaceAll(fmt.Sprint(tt.err), dir, "DIR")); diff != "" {
			t.Error(diff)
		}
	}
	if !bytes.Equal(before, bytesOf(t, c.Path)) {
		t.Error("the file changed")
	}
}

func TestAFullDiskStopsReplaceAndNotUpdate(t *testing.T) {
	dir := tmpfs(t, "size=64k")
	c := Cache{Path: filepath.Join(dir, "node.cache")}
	put(t, c, small())
	before := bytesOf(t, c.Path)
	err := c.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return fullCache(200), nil })
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	want := "node cache can't be written: write DIR/node.cache.new: no space left on device; file system tmpfs at DIR is full: free space there (df DIR)"
	if diff := cmp.Diff(want, strings.ReplaceAll(fmt.Sprint(err), dir, "DIR")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node.cache", "node.cache.lock"}, ls(t, dir)); diff != "" || !bytes.Equal(before, bytesOf(t, c.Path)) {
		t.Errorf("the old file is not intact: %s", diff)
	}

	// Somebody else fills the rest: lines that exist can be changed all the same.
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	want = "say why the pool is as it is: write DIR/node.cache.why.new: no space left on device; file system tmpfs at DIR is full: free space there (df DIR)"
	if diff := cmp.Diff(want, strings.ReplaceAll(fmt.Sprint(c.SetWhy("no room")), dir, "DIR")); diff != "" {
		t.Error(diff)
	}
	addr, err := pick(c, "new")
	if err != nil || get(t, c).OwnedBy(key("new"))[0].Addr != addr {
		t.Errorf("picked %s, %v", addr, err)
	}
}

// TestUpdateForOneDoesWhatUpdateDoes: it does not see what others use and does not
// need to. Only the numbers of an exhausted pool are less than all.
func TestUpdateForOneDoesWhatUpdateDoes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		state, all := small(), owners()
		keys := []eni.Key{key("web"), key("db"), key("we"), key("nobody"), {}}
		for i := range 12 {
			a := eni.Address{Addr: state.Addresses[0].Addr, State: rapid.SampledFrom([]eni.State{eni.Free, eni.Used, eni.Used}).Draw(rt, "state")}
			for range i + 30 {
				a.Addr = a.Addr.Next()
			}
			if a.ENI = 0; a.State == eni.Used {
				o := all.Draw(rt, "owner")
				o.Container = fmt.Sprint(i, o.Container) // each its own
				a.Owner, keys = &o, append(keys, o.Key)
			}
			state.Addresses = append(state.Addresses[:3+i:3+i], append([]eni.Address{a}, state.Addresses[3+i:]...)...)
		}
		k := rapid.SampledFrom(keys).Draw(rt, "key")
		o := eni.Owner{Key: k, Pod: "pod"}
		if rapid.Bool().Draw(rt, "reserved") {
			pods := map[netip.Addr]eni.Reservation{}
			for _, a := range state.Addresses {
				if a.State == eni.Used {
					continue
				}
				pods[a.Addr] = eni.Reservation{Topology: "db", Pod: rapid.SampledFrom([]string{"", "pod", "other"}).Draw(rt, "for")}
			}
			state.Reserve(pods, time.Hour)
			if rapid.Bool().Draw(rt, "another sandbox") {
				_, _ = state.AssignReserved(eni.Owner{Key: key("another"), Pod: "pod"}, "", "", time.Hour)
			}
		}
		now := SinceBoot()
		move := rapid.SampledFrom([]func(*ipam.State) error{
			func(s *ipam.State) error { _, err := s.AssignPod(o, "", now); return err },
			func(s *ipam.State) error { _, err := s.AssignPod(o, "eth1", now); return err },
			func(s *ipam.State) error { _, err := s.AssignReserved(o, "", "", now); return err },
			func(s *ipam.State) error { l, err := s.AssignReserved(o, "db", "", now); s.UndoLease(l); return err },
			func(s *ipam.State) error { s.Free(k, now); return nil },
			func(s *ipam.State) error { l, err := s.AssignPod(o, "", now); s.UndoLease(l); return err },
		}).Draw(rt, "move")

		one, other := Cache{Path: filepath.Join(dir, "one")}, Cache{Path: filepath.Join(dir, "other")}
		put(t, one, state)
		write(t, other.Path, bytesOf(t, one.Path))
		err1 := one.Update(t.Context(), move)
		err2 := other.For(k).Update(t.Context(), move)
		var none1, none2 *ipam.Exhausted
		if errors.As(err1, &none1) && errors.As(err2, &none2) {
			none2.Count, none2.Tallies = none1.Count, none1.Tallies
		}
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			rt.Fatalf("Update says %v, that for one %v", err1, err2)
		}
		if lines := changedLines(bytesOf(t, one.Path), bytesOf(t, other.Path)); lines != nil {
			rt.Fatalf("lines %v differ", lines)
		}
		var found, foundFor string
		err1 = one.View(t.Context(), func(s *ipam.State) error { found = shows(s.LeaseOf(k)); return nil })
		err2 = other.For(k).View(t.Context(), func(s *ipam.State) error { foundFor = shows(s.LeaseOf(k)); return nil })
		if err := errors.Join(err1, err2); err != nil || found != foundFor {
			rt.Fatalf("View finds %s, that for one %s, %v", found, foundFor, err)
		}
	})
}

func shows(l ipam.Lease) string {
	text := l.Interface.ID
	for _, a := range l.Addresses {
		text += " " + show(a)
	}
	return text
}
