// Package e2e runs the built plugin as runtimes do: real processes, real
// namespaces, real clients and neighbours in the chain.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/test/lab"
)

// Most of what the tests take is waiting, for the kernel above all.
func TestMain(m *testing.M) { nettest.Share(m, 4) }

// binDir holds the plugin, enipoolctl, the reference plugins and cnitool. They
// are built by make; a bare `go test` builds what is missing.
func binDir(t testing.TB) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, need := range []struct{ file, target string }{{".build/enipool", "build"}, {".build/cni/cnitool", "tools"}} {
		if _, err := os.Stat(filepath.Join(root, need.file)); err == nil {
			continue
		}
		if err := build("make", "-C", root, need.target); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(root, ".build")
}

// build runs a command that writes into .build/, where other processes of the tests may
// want the same.
func build(command string, args ...string) error {
	return nettest.Once(filepath.Join("..", "..", ".build", "e2e", "lock"), func() error {
		if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", command, strings.Join(args, " "), err, out)
		}
		return nil
	})
}

// helper builds a program of a folder of this package, and returns its file.
func helper(name string) (string, error) {
	file, err := filepath.Abs(filepath.Join("..", "..", ".build", "e2e", name))
	if err != nil {
		return "", err
	}
	return file, build("go", "build", "-o", file, "./"+name)
}

func plugin(t testing.TB) string  { return filepath.Join(binDir(t), "enipool") }
func cniPath(t testing.TB) string { return binDir(t) + ":" + filepath.Join(binDir(t), "cni") }

// node is a node with ENIs, in the namespace of the tests.
type node struct {
	t     testing.TB
	Cache nodecache.Cache
	every int // one of so many system calls is drawn that a call could be killed at, 0 for all

	reserved netip.Addr // kept for a pod, the zero Addr for none
}

// newNode makes a node of ENIs with so many addresses each. Its links lead
// nowhere: traffic is the demo's and the simulated VPC's business. Of what an agent sets up
// it has the routing map only, where it needs one: no pod of a secondary ENI starts without.
func newNode(t testing.TB, s ipam.Settings, perENI ...int) *node {
	t.Helper()
	nothingRaces(t)
	nettest.Need(t)
	n := &node{t: t, Cache: nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}}
	if s.MarkMask == 0 {
		s.MarkMask = ipam.DefaultMarkMask
	}
	if s.Families == nil {
		s.Families = []eni.Family{eni.IPv4}
	}
	cached := &ipam.State{Settings: s}
	for i, count := range perENI {
		dev := fmt.Sprintf("eth%d", i)
		nettest.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", dev+"-far")
		nettest.Run(t, "ip", "link", "set", dev, "up")
		t.Cleanup(func() { nettest.Run(t, "ip", "link", "del", dev) })
		cached.ENIs = append(cached.ENIs, eni.Interface{ID: "eni-" + dev, Index: i, Device: dev, MTU: 1500, V4: eni.Net{
			Primary: netip.MustParsePrefix(fmt.Sprintf("10.0.%d.2/24", i)), Gateway: netip.MustParseAddr(fmt.Sprintf("10.0.%d.1", i))}})
		addr := netip.MustParseAddr(fmt.Sprintf("10.0.%d.10", i))
		for range count {
			cached.Addresses = append(cached.Addresses, eni.Address{Addr: addr, ENI: i})
			addr = addr.Next()
		}
	}
	err := n.Cache.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return cached, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.nothingLeft)
	if s.Routing == ipam.Map && len(perENI) > 1 {
		n.filterPackets()
	}
	return n
}

// nothingLeft is what holds after every test once its pods are gone.
func (n *node) nothingLeft() {
	n.t.Helper()
	if wrong := n.leftovers(); wrong != "" {
		n.t.Error(wrong)
	}
}

func (n *node) leftovers() string {
	var wrong []string
	for _, list := range [][]string{{"-br", "link"}, {"rule"}, {"-6", "rule"}, {"route", "show", "table", "all"}, {"-6", "route", "show", "table", "all"}} {
		for line := range strings.Lines(nettest.Run(n.t, "ip", list...)) {
			if strings.HasPrefix(line, "eni") || strings.Contains(line, "proto 69") || strings.Contains(line, "proto 70") {
				wrong = append(wrong, "left over: "+line)
			}
		}
	}
	n.view(func(s *ipam.State) {
		if err := s.Check(); err != nil {
			wrong = append(wrong, "the cache contradicts itself: "+err.Error())
		}
		for _, a := range s.Used() {
			wrong = append(wrong, fmt.Sprintf("still used: %s by %s", a.Addr, a.Owner.Key))
		}
	})
	return strings.Join(wrong, "\n")
}

func (n *node) view(fn func(*ipam.State)) {
	n.t.Helper()
	if err := n.Cache.View(context.Background(), func(s *ipam.State) error { fn(s); return nil }); err != nil {
		n.t.Fatal(err)
	}
}

// conf returns a network configuration for the plugin alone.
func (n *node) conf(version string, more ...string) string {
	extra := ""
	for _, m := range more {
		extra += "," + m
	}
	return fmt.Sprintf(`{"cniVersion":%q,"name":"pods","type":"enipool","cachePath":%q,"waitForAddress":"0s"%s}`, version, n.Cache.Path, extra)
}

// call is one process of the plugin.
type call struct {
	command, id, netns, ifName, args, conf string
	wrap                                   []string // a command line to run it under
}

// answer is what came back.
type answer struct {
	stdout, stderr string
	exit           int
}

// cniError returns the error object, failing the test if stdout is anything but
// one.
func (a answer) cniError(t testing.TB) (e struct {
	CNIVersion string
	Code       int
	Msg        string
	Details    *string
}) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(a.stdout))
	if err := d.Decode(&e); err != nil || d.More() || e.CNIVersion == "" || e.Code == 0 || e.Msg == "" || e.Details == nil {
		t.Errorf("stdout is not one complete error object: %v\n%s", err, a.stdout)
	}
	return e
}

func (n *node) cmd(c call) *exec.Cmd {
	argv := append(c.wrap, plugin(n.t))
	cmd := exec.Command(argv[0], argv[1:]...)
	if c.ifName == "" {
		c.ifName = "eth0"
	}
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+c.command, "CNI_CONTAINERID="+c.id, "CNI_NETNS="+c.netns,
		"CNI_IFNAME="+c.ifName, "CNI_PATH="+cniPath(n.t), "CNI_ARGS="+c.args)
	cmd.Stdin = strings.NewReader(c.conf)
	return cmd
}

func (n *node) run(c call) answer {
	n.t.Helper()
	cmd := n.cmd(c)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return answer{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func (n *node) mustRun(c call) answer {
	n.t.Helper()
	a := n.run(c)
	if a.exit != 0 {
		n.t.Fatalf("%s %s: exit %d\n%s%s", c.command, c.id, a.exit, a.stdout, a.stderr)
	}
	return a
}

// deadline bounds a wait for something that the kernel does in the background.
func deadline(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 60*time.Second)
}

// Where the simulated VPC ends.
const (
	internet4 = lab.Internet4
	internet6 = lab.Internet6
)
