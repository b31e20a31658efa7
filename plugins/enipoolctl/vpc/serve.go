package vpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/isolate/sandbox"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/test/lab"
)

// options of a VPC.
type options struct {
	nodes           []string
	enis, addresses int
	agent           string
	detach          bool
}

// mostNodes is how many nodes have a subnet of their own in the VPC's range.
const mostNodes = 200

var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

// subnetOf returns the subnet of a node.
func subnetOf(i int) sim.Subnet {
	return sim.Subnet{ID: fmt.Sprintf("subnet-%d", i+1), V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i + 1), 0}), 24)}
}

// inSandbox marks, in the environment, the server's own process in a sandbox, with the folder: whose default another user has.
const inSandbox = "ENIPOOL_VPC"

// run serves the VPC: at once, behind this program, or in a sandbox where this user is root of nothing else.
func run(ctx context.Context, at *place, o options) (err error) {
	own := os.Getenv(inSandbox)
	at.folder = cmp.Or(own, at.folder)
	if at.folder, err = filepath.Abs(at.folder); err != nil {
		return err
	}
	if len(o.nodes) == 0 || len(o.nodes) > mostNodes {
		return fmt.Errorf("--node names %d nodes: must be 1 to %d", len(o.nodes), mostNodes)
	}
	for _, name := range o.nodes {
		if !nodeName.MatchString(name) { // it is a folder's name, too
			return fmt.Errorf("--node %q: must be of small letters, digits and dashes", name)
		}
	}
	if o.agent != "" {
		if o.agent, err = exec.LookPath(o.agent); err != nil {
			return fmt.Errorf("find the program of --agent: %w; `make build` puts it into .build/", err)
		}
		if o.agent, err = filepath.Abs(o.agent); err != nil {
			return err
		}
	}
	if o.detach {
		return detach(ctx, at)
	}
	if os.Geteuid() != 0 && own == "" {
		code, err := sandbox.Again(inSandbox + "=" + at.folder)
		if err != nil {
			return fmt.Errorf("a VPC needs network namespaces: %w", err)
		}
		if code == 0 {
			return nil
		}
		return &cli.ExitError{Code: code}
	}
	ready := isolate.ShareDir
	if own != "" {
		ready = sandbox.Enter
	}
	if err := ready(); err != nil {
		return err
	}
	return serve(ctx, at, o, own != "")
}

// serve makes the VPC, and removes it when ctx ends.
func serve(ctx context.Context, at *place, o options, own bool) (err error) {
	lock, err := at.takeLock()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := removeLeft(at); err != nil {
		return fmt.Errorf("remove what a killed server has left: %w", err)
	}
	// Before anything is made: who is killed leaves a trace.
	tells := served{PID: os.Getpid(), Sandbox: own, Nodes: o.nodes}
	if err := at.noteServed(tells); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeLeft(at)) }()
	v, err := lab.Open(tells.networkName(), sim.Options{Latency: latencies}, lab.V4)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	ctx, end := context.WithCancel(ctx)
	agents := &agents{place: at, program: o.agent}
	defer func() { end(); agents.running.Wait(); err = errors.Join(err, tells.endPrograms()) }()
	if _, err := v.Serve(at.socketPath(), nil); err != nil {
		return err
	}
	if err := addNodes(ctx, v, agents, o); err != nil {
		return err
	}
	if o.agent != "" {
		awaitAgents(ctx, at, o.nodes)
	}
	fmt.Print(greeting(at, o))
	tells.Ready = true
	if err := at.noteServed(tells); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// addNodes makes the nodes, each in a subnet of its own, with what its agent needs.
func addNodes(ctx context.Context, v *lab.VPC, a *agents, o options) error {
	for i, name := range o.nodes {
		own := subnetOf(i)
		ns, err := v.AddNode(sim.NodeSpec{Name: name, Limits: eni.Limits{ENIs: o.enis, V4: o.addresses + 1}, Subnet: own.ID, New: []string{own.ID}}, own)
		if err != nil {
			return err
		}
		if err := writeConfig(a.place, name); err != nil {
			return err
		}
		if err := a.start(ctx, name, ns); err != nil {
			return err
		}
	}
	return nil
}

// latencies are what EC2's calls take about.
var latencies = map[string]sim.Latency{
	"":              {Base: 100 * time.Millisecond, Jitter: 100 * time.Millisecond},
	sim.ActAssign:   {Base: 300 * time.Millisecond, Jitter: 300 * time.Millisecond},
	sim.ActUnassign: {Base: 300 * time.Millisecond, Jitter: 300 * time.Millisecond},
	sim.ActCreate:   {Base: 500 * time.Millisecond, Jitter: 500 * time.Millisecond},
	sim.ActAttach:   {Base: time.Second, Jitter: time.Second},
	sim.ActDetach:   {Base: time.Second, Jitter: time.Second},
}

// greeting says what there is and how to look around.
func greeting(at *place, o options) string {
	self, run := os.Args[0], ""
	if at.folder != defaultFolder() {
		run = " --folder " + at.folder
	}
	on := fmt.Sprintf("  %s vpc exec%s %s -- ", self, run, o.nodes[0])
	var b strings.Builder
	fmt.Fprintf(&b, "A simulated VPC, %s, with an internet, %s. Nodes, with at most %d ENIs of %d addresses each: %s.\n", lab.V4, lab.Internet4, o.enis, o.addresses, strings.Join(o.nodes, ", "))
	if o.agent == "" {
		fmt.Fprintf(&b, "An agent, from another terminal:\n%s%s --config %s\n", on, filepath.Join(filepath.Dir(self), "enipool-agent"), at.configPath(o.nodes[0]))
	} else {
		fmt.Fprintf(&b, "Each has an agent; its log is %s.\n", at.agentLogPath("NODE"))
	}
	fmt.Fprintf(&b, "A pod by hand (then: check, status, del), the node's addresses, and the pod's way out:\n")
	fmt.Fprintf(&b, "%sscripts/cnitool.sh add my-pod\n", on)
	fmt.Fprintf(&b, "%s%s pool show\n", on, self)
	fmt.Fprintf(&b, "%snsenter --net=%s ping -c 1 %s\n", on, isolate.Namespace{Name: "my-pod"}.Path(), lab.Internet4)
	fmt.Fprintf(&b, "`%s vpc stop%s` ends and removes all of it.\n", self, run)
	return b.String()
}
