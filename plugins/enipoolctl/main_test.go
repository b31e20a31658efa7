package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// As a command of a script this binary is enipoolctl itself.
	if filepath.Base(os.Args[0]) != "enipoolctl" {
		nettest.Isolate()
	}
	testscript.Main(m, map[string]func(){"enipoolctl": main})
}

// Each script is a session of a person at a node, a namespace of its own name.
func TestScripts(t *testing.T) {
	nettest.Need(t)
	plugin := filepath.Join(t.TempDir(), "enipool")
	if out, err := exec.Command("go", "build", "-o", plugin, "../enipool").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLUGIN", plugin)
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/sbin")
			return nil
		},
	})
}
