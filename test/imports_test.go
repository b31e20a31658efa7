// Package test holds what crosses packages: the rules of the architecture, the
// end-to-end tests and the benchmarks.
package test

import (
	"bytes"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/enipool/enipool/"

// layers orders the packages; imports go down only, and packages of one layer
// don't know each other, except that a sub-folder may import its parent.
var layers = map[string]int{
	"eni": 0, "digest": 0, "timeline": 0, // nouns
	"ipam":  1,                                                                                     // the node state
	"scale": 2, "netconf": 2, "capacity": 2, "health": 2, "quota": 2, "placement": 2, "devices": 2, // decisions
	"pool": 3, "topology": 3, // decisions made of others
	"order":   4,                                                                            // who makes which of those
	"isolate": 5, "iptexec": 5, "bpf": 5, "nlmsg": 5, "filelock": 5, "mounts": 5, "page": 5, // what effects share
	"nodecache": 6, "podrecord": 6, "kubeletplugin": 6, "host": 6, "cloud": 6, "kube": 6, "config": 6, "nettest": 6, "status": 6, // effects
	"hostport": 7,                                                                  // effects made of others
	"cni":      8, "node": 8, "agent": 8, "install": 8, "clouds": 8, "operator": 8, // flows
	"demo": 9, "simulate": 9, // all of it at once
}

// within orders the folders of a layer that know each other: a cloud's driver knows
// what a driver is, and nothing of the engine over it; a file's keys are a table of a general kind; what talks to the
// API server knows the kinds that it has; who calls the cloud knows what is decided for it.
var within = map[string]int{"cloud/driver": 1, "cloud/wire": 1, "cloud/engine": 2, "cloud/aws": 2, "cloud/bce": 2,
	"cloud/drivertest": 2, "cloud/sim": 3, "config/keys": 1, "config/agentconf": 2, "config/operatorconf": 3,
	"kube/crd": 1, "kube/crd/convert": 2, "kube": 3, "operator/claims": 1, "operator": 2}

// decisions is the highest layer that does no I/O.
const decisions = 4

// pure is all that the layers up to decisions may import of the standard library.
var pure = strings.Fields(`bytes cmp encoding/base32 encoding/binary encoding/hex encoding/json errors fmt iter maps math math/bits
	net/netip slices sort strconv strings time`)

// clock is what pure packages may not call: time is an argument.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker", "AfterFunc"}

func TestImportsGoDownOnly(t *testing.T) {
	for _, s := range sources(t) {
		layer, known := layers[s.top()]
		if !known {
			t.Errorf("%s: package %s has no place in the layers", s.file, s.pkg)
		}
		for _, spec := range s.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			below, ours := strings.CutPrefix(imported, module+"pkg/")
			if !ours {
				if layer <= decisions && !slices.Contains(pure, imported) {
					t.Errorf("%s: imports %s; nouns, node state and decisions do no I/O and need no module", s.file, imported)
				}
				continue
			}
			parent := strings.HasPrefix(s.pkg, below+"/")
			inside, ordered := within[below]
			if own := within[s.pkg]; ordered && s.top() == strings.Split(below, "/")[0] && inside < own {
				continue
			}
			if to := layers[strings.Split(below, "/")[0]]; to >= layer && !parent {
				t.Errorf("%s: %s of layer %d imports %s of layer %d", s.file, s.pkg, layer, below, to)
			}
		}
	}
}

func TestPurePackagesNeverReadTheClock(t *testing.T) {
	for _, s := range sources(t) {
		if layers[s.top()] > decisions {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call := findClockCall(n); call != "" {
				t.Errorf("%s calls %s; take the time as an argument", s.file, call)
			}
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", s.file)
			}
			return true
		})
	}
}

// A simulation runs the agent itself: all time of the agent passes by the clock that it is given.
func TestTheAgentReadsOnlyItsOwnClock(t *testing.T) {
	for _, s := range sources(t) {
		if s.pkg != "agent" && s.pkg != "simulate" || filepath.Base(s.file) == "clock.go" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call := findClockCall(n); call != "" {
				t.Errorf("%s calls %s; take the time from agent.Clock", s.file, call)
			}
			return true
		})
	}
}

// findClockCall returns what of package time the node uses to read the clock or to wait, "" for nothing.
func findClockCall(n ast.Node) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
		return "time." + sel.Sel.Name
	}
	return ""
}

func TestEveryPackageSaysItsJob(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		said[s.pkg] = said[s.pkg] || s.ast.Doc.Text() != ""
	}
	for pkg, ok := range said {
		if !ok {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

// What lies under pkg/ is part of a program, or of the one that it is there for. Suites that other
// packages' tests import say so by their names.
func TestEveryPackageIsLinkedByAProgram(t *testing.T) {
	list := func(args ...string) []string {
		t.Helper()
		out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
		}
		return strings.Fields(string(out))
	}
	linked := list("-deps", "../plugins/...")
	for _, pkg := range list("../pkg/...") {
		excused := strings.HasSuffix(pkg, "test")
		if !excused && !slices.Contains(linked, pkg) {
			t.Errorf("%s is linked by no program: a bed of tests lies in test/, a suite for other packages' tests is named so", pkg)
		}
	}
}

// Helm's library is there for the tests of its chart.
func TestNoProgramLinksHelm(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../plugins/...", "../scripts/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if at := strings.Index(string(out), "helm.sh/"); at >= 0 {
		t.Errorf("a program links %s", strings.Fields(string(out)[at:])[0])
	}
}

// The exec plugin is started for every pod; what it links, it pays for each time.
func TestThePluginLinksNothingHeavy(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "../plugins/enipool")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	heavy := []string{"net/http", "k8s.io/", "sigs.k8s.io/", "google.golang.org/", "github.com/aws/", "github.com/spf13/",
		"github.com/google/nftables", "github.com/coreos/go-iptables", "github.com/cilium/ebpf", "github.com/goccy/", "os/exec", "log/slog",
		module + "pkg/cloud", module + "pkg/kube", module + "pkg/host/firewall", module + "pkg/node/"}
	for dep := range strings.Lines(string(out)) {
		for _, h := range heavy {
			if strings.HasPrefix(dep, h) {
				t.Errorf("plugins/enipool links %s", strings.TrimSpace(dep))
			}
		}
	}
}

// html/template finds methods by their names, so that a program that has it has each exported method of each type: of the clients of clouds
// and API servers that is a quarter of the program. gRPC's traces would bring it along.
func TestAgentAndOperatorLinkNoHTMLTemplate(t *testing.T) {
	const tag = "-tags=grpcnotrace"
	out, err := exec.Command("go", "list", "-deps", tag, "../plugins/enipool-agent", "../plugins/enipool-operator").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if slices.Contains(strings.Fields(string(out)), "html/template") {
		t.Error("the agent or the operator links html/template; pages are made by pkg/page")
	}
	for _, file := range []string{"../Makefile", "../scripts/image/build.sh"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), tag) {
			t.Errorf("%s builds programs without %s", file, tag)
		}
	}
}

// Every byte of it is read from the disk at the first start after a boot, and stays in
// the page cache beside the pods.
func TestThePluginIsSmall(t *testing.T) {
	const most = 4_000_000
	plugin := filepath.Join(t.TempDir(), "enipool")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", plugin, "../plugins/enipool")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=") // whatever this test is built with; make build inlines less
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(plugin)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > most {
		t.Errorf("the plugin has %d bytes, more than %d: see what came with 'go tool nm -size -sort size' of a build with symbols", info.Size(), most)
	}
}
