package lastgood

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsKeptIsReadAgain(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "run", "agent.json"), "/etc/enipool/agent.yaml")
	if _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, text := range []string{"a: b\n", "", "# sha256: x\na: b", "a: b\n# of: /x\n\x00\xff"} {
		if err := f.Keep([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Read(); err != nil || string(got) != text || !f.Holds([]byte(text)) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if is, err := os.Stat(f.Path); err != nil || is.Mode() != 0o600 {
		t.Errorf("%v, %v", is, err)
	}
	if _, err := Beside(strings.TrimSuffix(f.Path, ".good"), "/etc/other.yaml").Read(); err == nil || !strings.Contains(err.Error(), "of another configuration file, /etc/enipool/agent.yaml") {
		t.Error(err)
	}
}

func TestNoPartOfWhatWasWrittenIsTaken(t *testing.T) {
	f := Beside(filepath.Join(t.TempDir(), "agent.json"), "/etc/enipool/agent.yaml")
	text := []byte("vpcCIDRs: [10.0.0.0/16]\npool:\n  batch: 16\n")
	if err := f.Keep(text); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{append(whole, '\n'), []byte(strings.Replace(string(whole), "16\n", "61\n", 1)), text}
	for n := range whole {
		damaged = append(damaged, whole[:n])
	}
	for _, content := range damaged {
		if err := os.WriteFile(f.Path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Read(); err == nil {
			t.Errorf("%q is taken as %q", content, got)
		}
	}
	if err := f.Keep(text); err != nil || !f.Holds(text) { // it is mended with the next write
		t.Error(err)
	}
}

func TestWhatCanNotBeWrittenLeavesWhatWasKept(t *testing.T) {
	dir := t.TempDir()
	f := Beside(filepath.Join(dir, "agent.json"), "/etc/enipool/agent.yaml")
	if err := f.Keep([]byte("a: 1\n")); err != nil {
		t.Fatal(err)
	}
	// The name of the new file is too long: the folder stays as it is.
	long := File{Path: filepath.Join(dir, strings.Repeat("x", 253)), Of: f.Of}
	if err := long.Keep([]byte("a: 2\n")); err == nil || !strings.HasPrefix(err.Error(), "keep the configuration: ") {
		t.Error(err)
	}
	if got, err := f.Read(); err != nil || string(got) != "a: 1\n" {
		t.Errorf("%q, %v", got, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}

// A reboot empties /run.
func TestWhatIsKeptOutlastsAReboot(t *testing.T) {
	for state, want := range map[string]string{
		"/run/enipool/agent.json":     "/var/lib/enipool/agent.json.good",
		"/var/run/enipool/agent.json": "/var/lib/enipool/agent.json.good",
		"/run//a/../other.json":       "/var/lib/other.json.good",
		"/srv/run/agent.json":         "/srv/run/agent.json.good",
		"/runs/agent.json":            "/runs/agent.json.good",
	} {
		if got := Durable(state, ""); got.Path != want {
			t.Errorf("%s: %s, want %s", state, got.Path, want)
		}
	}
	want := "/run/a.good /run/a.good.new /var/lib/a.good /var/lib/a.good.new /var/lib/a.seen /var/lib/a.seen.new"
	if got := strings.Join(Leftovers("/run/a"), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
