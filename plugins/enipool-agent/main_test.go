package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/lab"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// As a command of a script this binary is enipool-agent itself.
	if filepath.Base(os.Args[0]) != "enipool-agent" {
		nettest.Isolate()
	}
	testscript.Main(m, map[string]func(){"enipool-agent": main})
}

// Each script is a session of a person at a node of a simulated VPC.
func TestScripts(t *testing.T) {
	nettest.Need(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"vpc": serveVPC, "refuse": refuse},
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", e.Getenv("PATH")+":/usr/sbin:/sbin")
			e.Values[account{}] = new(*sim.Account)
			return expand(e.WorkDir)
		},
	})
}

// expand puts the script's folder in place of $WORK in configurations, whose paths
// must be absolute.
func expand(work string) error {
	files, err := filepath.Glob(filepath.Join(work, "*.yaml"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte("$WORK"), []byte(work)), 0o600); err != nil {
			return err
		}
	}
	return err
}

// account is where a script keeps its cloud.
type account struct{}

// serveVPC is `vpc NAME`: a cloud at $WORK/vpc.sock with a node n1, whose namespace
// is NAME-n1.
func serveVPC(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: vpc NAME")
	}
	v, err := lab.Open(args[0], sim.Options{MTU: 1500}, lab.V4)
	ts.Check(err)
	ts.Defer(func() { ts.Check(v.Close()) })
	_, err = v.AddNode(sim.NodeSpec{Name: "n1", Limits: eni.Limits{ENIs: 3, V4: 20}, Subnet: lab.Subnet.ID}, lab.Subnet)
	ts.Check(err)
	_, err = v.Serve(ts.MkAbs("vpc.sock"), nil)
	ts.Check(err)
	*ts.Value(account{}).(**sim.Account) = v.Account
}

// refuse makes all calls to the script's cloud fail with what a cloud says to wrong
// credentials; `! refuse` ends it.
func refuse(ts *testscript.TestScript, neg bool, _ []string) {
	kind := cloud.ErrForbidden
	if neg {
		kind = nil
	}
	(*ts.Value(account{}).(**sim.Account)).Refuse(kind)
}
