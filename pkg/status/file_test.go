package status

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func example() Status {
	return Status{Node: "n1", Written: noon, Due: noon.Add(time.Minute), Mode: "batch", Strategy: "equation",
		Demand: 36, Need: 48, Target: 48, Reason: "up", Most: 109, MaxPods: 110, MaxPodsSource: "default",
		Addresses: Addresses{Attached: 16, Free: 15, Used: 1}, ENIs: 1, ENILimit: 4, Ready: true}
}

func write(t *testing.T, f File, s Status) {
	t.Helper()
	if err := f.Write(s); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "node.cache"))
	if filepath.Base(f.Path) != "agent.status.json" {
		t.Errorf("the file is %s", f.Path)
	}
	want := example()
	want.LastError, want.LastErrorTime = "AssignAddresses eni-a: throttled", noon
	want.InFlight = []string{"assign 32 ipv4 addresses to eni-a"}
	write(t, f, want)
	got, err := f.Read()
	want.Heard = got.Heard
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestTheFileIsWrittenWhenThereIsNewsOrItGetsOld(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Status)
		want   bool
	}{
		{"nothing new", func(*Status) {}, false},
		{"the time alone", func(s *Status) {
			s.Written, s.Due = noon.Add(29*time.Second), noon.Add(89*time.Second)
		}, false},
		{"the time alone, for long", func(s *Status) { s.Written = noon.Add(30 * time.Second) }, true},
		{"the clock was set back", func(s *Status) { s.Written = noon.Add(-time.Second) }, true},
		{"a number", func(s *Status) { s.Demand++ }, true},
		{"a list", func(s *Status) { s.TargetCauses = []string{"no room"} }, true},
		{"the time of the last error", func(s *Status) { s.LastErrorTime = noon }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := File{filepath.Join(t.TempDir(), "status.json")}
			write(t, f, example())
			before := inode(t, f)
			s := example()
			tt.change(&s)
			write(t, f, s)
			if got := inode(t, f) != before; got != tt.want {
				t.Errorf("written: %v, want %v", got, tt.want)
			}
		})
	}
}

// inode tells one file from the next: a temporary file that became this one has
// another, as both were there at the same time.
func inode(t *testing.T, f File) uint64 {
	t.Helper()
	info, err := os.Stat(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func TestTheFileIsForEverybodyToReadWhateverTheUmask(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "status.json")}
	defer syscall.Umask(syscall.Umask(0o077))
	write(t, f, example())
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAWriteThatFailsLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	f := File{filepath.Join(dir, "status.json")}
	if err := os.Mkdir(f.Path, 0o700); err != nil { // a folder can't be replaced
		t.Fatal(err)
	}
	if f.Write(example()) == nil {
		t.Error("no error")
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

func TestADamagedFileIsAnErrorToReadersAndIsReplacedByTheNextWrite(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "status.json")}
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := os.WriteFile(f.Path, []byte(`{"node": "n1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Read(); err == nil || s.Node != "" {
		t.Errorf("damaged: %+v, %v", s, err)
	}
	write(t, f, example())
	if s, err := f.Read(); err != nil || s.Node != "n1" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAnAgentIsLateAfterItsNextTickIsLongDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		due  time.Time
		want time.Duration
	}{
		{"the time of the next tick is not told", time.Time{}, 3 * time.Minute},
		{"in a minute", noon.Add(time.Minute), 3 * time.Minute},
		{"in an hour", noon.Add(time.Hour), time.Hour + 2*time.Minute},
		{"before the status", noon.Add(-time.Hour), 2 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (Status{Written: noon, Due: tt.due}).Late(); got != tt.want {
				t.Errorf("late after %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAStatusThatFindsNoRoomSaysWhatToDo(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "status.json")}
	if err := os.Symlink("/dev/full", f.Path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(Status{}); err == nil || !strings.Contains(err.Error(), " is full: free space there (df ") {
		t.Error(err)
	}
}
