package kubeletplugin

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// killed leaves in a kubelet's folder what an agent that was killed does.
func (k *kubelet) killed(claims string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Join(k.folder, "plugins/enipool.io"), 0o750); err != nil {
		k.t.Fatal(err)
	}
	for _, socket := range []string{"plugins_registry/enipool.io-reg.sock", "plugins/enipool.io/dra.sock"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(k.folder, socket), Net: "unix"})
		if err != nil {
			k.t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
	}
	k.write("plugins/enipool.io/claims.json", claims)
}

func (k *kubelet) write(path, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.folder, path), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// files are all names below the kubelet's folder.
func (k *kubelet) files() (names []string) {
	k.t.Helper()
	err := filepath.WalkDir(k.folder, func(path string, _ os.DirEntry, err error) error {
		if name, _ := filepath.Rel(k.folder, path); name != "." {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return names
}

func TestRemovingTakesAllThatDevicesHadAndDoesSoOnce(t *testing.T) {
	for _, claims := range []string{`{"claims": null}`, `{"claims":[{`} { // that of a power cut too
		k := newKubelet(t)
		k.killed(claims)
		k.write("plugins/enipool.io/.claims.new", "half")
		got, err := Remove(k.folder, "enipool.io")
		want := []string{"plugins_registry/enipool.io-reg.sock", "plugins/enipool.io/dra.sock", "plugins/enipool.io/claims.json", "plugins/enipool.io/.claims.new", "plugins/enipool.io"}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff([]string{"plugins", "plugins_registry"}, k.files()); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
		if got, err := Remove(k.folder, "enipool.io"); got != nil || err != nil {
			t.Errorf("again: %v, %v", got, err)
		}
	}
	if got, err := Remove(t.TempDir()+"/none", "enipool.io"); got != nil || err != nil {
		t.Errorf("without a kubelet: %v, %v", got, err)
	}
}

func TestRemovingLeavesWhatOthersHave(t *testing.T) {
	k := newKubelet(t)
	k.killed(`{"claims": []}`)
	k.write("plugins/enipool.io/notes.txt", "of a person")
	k.write("plugins_registry/gpu.example.com-reg.sock", "")
	if _, err := Remove(k.folder, "enipool.io"); err != nil {
		t.Error(err)
	}
	want := []string{"plugins", "plugins/enipool.io", "plugins/enipool.io/notes.txt", "plugins_registry", "plugins_registry/gpu.example.com-reg.sock"}
	if diff := cmp.Diff(want, k.files()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Nobody but a plugin that knows the claims ends the pods that have them.
func TestRemovingLeavesPreparedClaims(t *testing.T) {
	k := newKubelet(t)
	k.killed(`{"claims": [{"UID": "u1"}, {"UID": "u2"}]}`)
	before := k.files()
	got, err := Remove(k.folder, "enipool.io")
	if used := new(UsedError); got != nil || !errors.As(err, &used) || used.Claims != 2 || used.Path != "plugins/enipool.io/claims.json" {
		t.Errorf("%v, %v", got, err)
	}
	if diff := cmp.Diff(before, k.files()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
