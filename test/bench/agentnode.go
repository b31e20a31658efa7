package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/lab"
)

// simulated is the cloud of the agent's nodes.
type simulated struct {
	*lab.VPC
	socket string
	nodes  int
}

// newCloud makes the VPC and serves its account on a unix socket.
func (b *bench) newCloud() (*simulated, error) {
	v, err := lab.Open("cloud", sim.Options{MTU: 1500, MaxAddresses: slotsPerENI + 1,
		Latency: map[string]sim.Latency{"": {Base: cloudLatency}, sim.ActAttach: {Base: createLatency}}}, vpc)
	if err != nil {
		return nil, err
	}
	c := &simulated{VPC: v, socket: b.temp("vpc.sock")}
	if err := os.MkdirAll(filepath.Dir(c.socket), 0o700); err != nil {
		return nil, err
	}
	_, err = c.Serve(c.socket, nil)
	return c, err
}

// agentNode is a node of the VPC with its agent.
type agentNode struct {
	bench    *bench
	cloud    *simulated
	name     string
	strategy string
	space    space
	folder   string
	cache    string
	pods     []space
	process  *lab.Process

	// Of a node of a cluster: what its configuration says more, and its pods' UIDs.
	keys string
	uids []string

	describe string // cloud.describe, "" for that of the simulated cloud: as often as resync
}

// newAgentNode adds a node to the VPC, in a subnet of its own.
func (c *simulated) newAgentNode(b *bench, strategy string) (*agentNode, error) {
	c.nodes++
	n := &agentNode{bench: b, cloud: c, strategy: strategy, name: fmt.Sprint("n", c.nodes)}
	n.folder = b.temp(n.name)
	if err := os.RemoveAll(n.folder); err != nil { // of another row's node of the same name
		return nil, err
	}
	n.cache = filepath.Join(n.folder, "node.cache")
	subnet := sim.Subnet{ID: "subnet-" + n.name, V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(16 * c.nodes), 0}), 20)}
	ns, err := c.AddNode(sim.NodeSpec{Name: n.name, Subnet: subnet.ID, New: []string{subnet.ID},
		Limits: eni.Limits{ENIs: enisPerNode, V4: slotsPerENI + 1}}, subnet)
	n.space = space{ns}
	return n, err
}

// configure writes the agent's configuration, or a new one that it takes over, with
// more keys.
func (n *agentNode) configure(more string) error {
	describe := ""
	if n.describe != "" {
		describe = ", describe: " + n.describe
	}
	text := fmt.Sprintf("node: %s\ncache: %s\nstate: %s/agent.json\nvpcCIDRs: [%s]\ncloud: {endpoint: \"unix://%s\"%s}\n"+
		"pool: {strategy: %s}\nmaxPods: 320\n%s%s", n.name, n.cache, n.folder, vpc, n.cloud.socket, describe, n.strategy, n.keys, more)
	next := n.config() + ".new"
	return errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, n.config()))
}

func (n *agentNode) config() string { return filepath.Join(n.folder, "conf", "agent.yaml") }

// start runs the agent and waits until the node is right.
func (n *agentNode) start() error {
	if err := n.launch(); err != nil {
		return err
	}
	return n.settle()
}

// launch runs the agent.
func (n *agentNode) launch() error {
	if err := os.MkdirAll(filepath.Dir(n.config()), 0o700); err != nil {
		return err
	}
	if err := n.configure(""); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(n.folder, "agent.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(n.bench.bin.path("enipool-agent"), "--config", n.config())
	cmd.Stderr = log
	if n.process, err = lab.Start(cmd, n.space.do); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	return nil
}

// stop ends the agent and forgets the pods: their links go with their namespaces.
func (n *agentNode) stop() error {
	var errs []error
	if n.process != nil {
		if !n.process.Stop(time.Minute) {
			errs = append(errs, errors.New("the agent did not end within a minute of SIGTERM"))
		}
		errs = append(errs, n.process.Err)
	}
	for _, pod := range n.pods {
		errs = append(errs, pod.Remove())
	}
	return errors.Join(errs...)
}

// log is what the agent logged, for an error that needs it.
func (n *agentNode) log() []byte {
	text, _ := os.ReadFile(filepath.Join(n.folder, "agent.log"))
	return text
}

// tries is how often the ADD of a pod is repeated at once if it fails, as a kubelet
// does it.
const tries = 3

// attach lets so many pods come at once. It returns after how many seconds the last
// one was up, and how many ADDs failed on the way.
func (n *agentNode) attach(pods int) (seconds float64, failed int, err error) {
	spaces, err := newSpaces(n.bench.unique(n.name+"-pod"), pods)
	if err != nil {
		return 0, 0, err
	}
	first := len(n.pods)
	n.pods = append(n.pods, spaces...)
	var failures atomic.Int64
	seconds, left := burst(func(pod space, call int) (ms float64, err error) {
		for range tries {
			if ms, err = n.add(pod, first+call); err == nil {
				return ms, nil
			}
			failures.Add(1)
			n.bench.progress("ADD failed: %.1000s", err)
		}
		return 0, err
	}, spaces, 0)
	return seconds, int(failures.Load()), errors.Join(left...)
}

// add attaches a pod by the plugin.
func (n *agentNode) add(pod space, number int) (ms float64, err error) {
	conf := fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"enipool","cachePath":%q,"waitForAddress":"90s"}`, n.cache)
	p := n.bench.bin.attach("enipool", "ADD", container(number), "eth0", pod, conf)
	uid := fmt.Sprintf("%036d", number)
	if number < len(n.uids) {
		uid = n.uids[number]
	}
	p.env = append(p.env, fmt.Sprintf("CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-%d;K8S_POD_UID=%s", number, uid))
	err = n.space.do(func() (err error) {
		ms, _, err = p.run()
		return err
	})
	return ms, err
}

// settle waits until the pool is as large as the agent wants it for the pods, and
// the agent rests.
func (n *agentNode) settle() error {
	page := status.Beside(n.cache)
	var s status.Status
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var err error
		if s, err = page.Read(); err != nil {
			continue
		}
		if s.Ready && s.Addresses.Used == len(n.pods) && s.PendingADDs == 0 && s.Addresses.Attached == s.Target && len(s.InFlight) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the pool is not right after a minute: %+v", s)
}

// changes is how many calls there were that change the cloud.
func (n *agentNode) changes() int {
	calls := n.cloud.Account.Calls()
	return calls[sim.ActAssign] + calls[sim.ActUnassign] + calls[sim.ActCreate] + calls[sim.ActDelete]
}
