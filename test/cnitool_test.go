package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runCnitool runs a copy of scripts/cnitool.sh whose cnitool only prints its arguments
// and the configuration it would use.
func runCnitool(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"scripts/cnitool.sh": read(t, "scripts/cnitool.sh"),
		".build/cni/cnitool": "#!/bin/sh\necho cnitool \"$@\"\ncat $NETCONFPATH/*\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
	}
	text, err := exec.Command(filepath.Join(dir, "scripts/cnitool.sh"), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return string(text), code
}

func TestTheScriptForADDsByHandNeverTouchesTheKubeletsPods(t *testing.T) {
	out, code := runCnitool(t, "gc", "/run/enipool/node.cache", "test-pod")
	if code != 2 || strings.Contains(out, "\ncnitool") || !strings.Contains(out, "pool reclaim") {
		t.Errorf("gc, which would delete every pod of the network, ended with %d:\n%s", code, out)
	}
	out, code = runCnitool(t, "status", "/run/enipool/node.cache", "test-pod")
	if code != 0 || !strings.Contains(out, "cnitool status enipool-by-hand /run/netns/test-pod") || !strings.Contains(out, `"name": "enipool-by-hand"`) {
		t.Errorf("status ended with %d:\n%s", code, out)
	}
	if strings.Contains(read(t, "conf/10-enipool.conflist"), "enipool-by-hand") {
		t.Error("the kubelet's network has the name of the script's")
	}
}
