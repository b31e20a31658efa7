package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/gofrs/flock"
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
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", programs+"/", "../enipool", "../enipool-agent").CombinedOutput(); err != nil {
		t.Fatalf("build plugin and agent: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"keep": keep},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PLUGIN", filepath.Join(programs, "enipool"))
			e.Setenv("AGENT", filepath.Join(programs, "enipool-agent"))
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/sbin")
			return nil
		},
	})
}

// keep is a command of scripts: until the script ends, an agent keeps the node of the
// cache and looks at it again within the hour.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	cache := nodecache.Cache{Path: ts.MkAbs(args[0])}
	l := flock.New(cache.AgentLock())
	if got, err := l.TryLock(); !got || err != nil {
		ts.Fatalf("keep %s: %t, %v", cache.Path, got, err)
	}
	ts.Defer(func() { _ = l.Unlock() })
	now := time.Now()
	if err := status.Beside(cache.Path).Write(status.Status{Written: now, Due: now.Add(time.Hour)}); err != nil {
		ts.Fatalf("keep %s: %v", cache.Path, err)
	}
}
