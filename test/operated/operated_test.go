// Package operated tests what ships where an operator calls the cloud: the operator's and the agent's own processes, the
// plugin, a real API server, and a simulated VPC of real links.
package operated

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// bed is a cluster of one node.
type bed struct {
	*testing.T
	api  *kube.Cluster
	vpc  *lab.VPC
	node isolate.Namespace
	dir  string
	bin  string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	nettest.Need(t)
	kube.Need(t)
	b := &bed{T: t, api: kube.Start(t, kube.Options{}), dir: lab.Dir(t), bin: t.TempDir()}
	if out, err := exec.Command("go", "build", "-o", b.bin, "../../plugins/enipool", "../../plugins/enipool-agent", "../../plugins/enipool-operator").CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v\n%s", err, out)
	}
	b.api.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/crds")
	b.api.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/operator")
	b.api.Kubectl("wait", "--for=condition=Established", "crd/nodenetworks.enipool.io", "crd/subnets.enipool.io")
	b.vpc = lab.NewVPC(t, "operated", sim.Options{MTU: 1500}, lab.V4)
	_, err := b.vpc.Serve(filepath.Join(b.dir, "vpc.sock"), nil)
	b.must(err)
	b.node, err = b.vpc.AddNode(sim.NodeSpec{Name: "n1", Subnet: lab.Subnet.ID, New: []string{lab.Subnet.ID}, Limits: eni.Limits{ENIs: 4, V4: 10}}, lab.Subnet)
	b.must(err)
	b.reach()
	zone := ""
	b.vpc.Account.View(0, func(tx *sim.Tx) { zone = tx.Subnets()[0].Zone })
	b.api.Apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": %q}},
		"spec": {"providerID": "sim:///%s/n1"}}`, zone, zone))
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// reach brings the API server into the node's namespace.
func (b *bed) reach() {
	at, err := url.Parse(b.api.Config().Host)
	b.must(err)
	way, err := lab.Reach(at.Host, b.node.Do, nil)
	b.must(err)
	b.Cleanup(way.Close)
}

// run starts a program with a configuration.
func (b *bed) run(program, conf string, in lab.Do) *lab.Process {
	b.Helper()
	file := filepath.Join(b.dir, program+".yaml")
	b.must(os.WriteFile(file, []byte(conf), 0o600))
	log, err := os.OpenFile(filepath.Join(b.dir, program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	b.must(err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(b.bin, program), "--config", file)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := lab.Start(cmd, in)
	b.must(err)
	b.Cleanup(func() {
		if p.Alive() {
			p.Stop(30 * time.Second)
		}
		if b.Failed() {
			text, _ := os.ReadFile(log.Name())
			b.Logf("%s said:\n%s", program, text)
		}
	})
	return p
}

func (b *bed) operator() *lab.Process {
	b.Helper()
	return b.run("enipool-operator", fmt.Sprintf("cloud: {endpoint: 'unix://%s/vpc.sock', cluster: blue, instance: n1, subnets: [%s]}\nsettle: 1s\nlisten: ''\nkubeconfig: %s\n",
		b.dir, lab.Subnet.ID, b.api.ServiceAccountKubeconfig("kube-system", "enipool-operator")), func(fn func() error) error { return fn() })
}

// agent runs the node's agent. It has no way to the cloud: nothing of it is in its file.
func (b *bed) agent() *lab.Process {
	b.Helper()
	return b.run("enipool-agent", fmt.Sprintf("node: n1\ncache: %[1]s/node.cache\nstate: %[1]s/agent.json\nvpcCIDRs: [%[2]s]\ncloud: {provider: operator}\n"+
		"kubernetes: {enabled: true, kubeconfig: %[3]s}\npool: {batch: 4, stable: 5s, burstWindow: 1s, delay: 0s, releaseInterval: 1s}\ncoolDown: 1s\nlisten: ''\nmaxPods: 30\n", b.dir, lab.V4, b.api.Kubeconfig("admin")), b.node.Do)
}

func (b *bed) page() (status.Status, error) {
	return status.Beside(filepath.Join(b.dir, "node.cache")).Read()
}

// bind makes a pod that is bound to the node.
func (b *bed) bind(name string) {
	b.Helper()
	b.api.Apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "default"},
		"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "none:1"}]}}`, name))
}

// call calls the plugin for a pod as a runtime does, and returns what it says.
func (b *bed) call(command, name string, pod nettest.Netns) (string, error) {
	b.Helper()
	uid := b.api.Kubectl("get", "pod", name, "--output=jsonpath={.metadata.uid}")
	cmd := exec.Command(filepath.Join(b.bin, "enipool"))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+name, "CNI_IFNAME=eth0", "CNI_NETNS="+pod.Path, "CNI_PATH="+b.bin,
		fmt.Sprintf("CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s", name, uid))
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"enipool","cachePath":"%s/node.cache","waitForAddress":"60s"}`, b.dir))
	var out []byte
	err := b.node.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", command, name, err, out)
	}
	return string(out), err
}

// Pods get addresses that the operator has asked the cloud for; a node goes on while the operator is away; and what no pod needs
// any more goes back.
func TestPodsOfANodeWhoseOperatorCallsTheCloud(t *testing.T) {
	b := newBed(t)
	first := b.operator()
	agent := b.agent()
	pods := map[string]nettest.Netns{}
	up := func(name string) {
		t.Helper()
		b.bind(name)
		pods[name] = nettest.NewNetns(t, "operated-"+name)
		b.api.Eventually("an address for "+name, func() error { // a kubelet tries again, too
			_, err := b.call("ADD", name, pods[name])
			return err
		})
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		up(name)
	}
	has := func(what string, least, most int) {
		t.Helper()
		b.api.Eventually(what, func() error {
			s, err := b.page()
			if err == nil && (s.Addresses.Used != len(pods) || s.Addresses.Attached < least || s.Addresses.Attached > most) {
				err = fmt.Errorf("%+v", s.Addresses)
			}
			return err
		})
	}
	has("a pool for six pods", 8, 12)

	// Away for a while: what is free goes to pods, and the kernel's is untouched.
	first.Kill()
	up("g")
	b.must(b.vpc.Account.Check())
	b.operator() // leads when the lease of the first has run out
	for _, name := range []string{"h", "i", "j", "k", "l", "m"} {
		up(name)
	}
	has("a pool for thirteen", 13, 20)

	for _, name := range []string{"h", "i", "j", "k", "l", "m", "g", "f"} {
		_, err := b.call("DEL", name, pods[name])
		b.must(err)
		b.api.Kubectl("delete", "pod", name, "--grace-period=0", "--force")
		delete(pods, name)
	}
	if !agent.Stop(30 * time.Second) {
		t.Error("the agent did not end")
	}
	b.agent() // goes on with what the one before has begun
	has("less for five", 5, 11)
	b.api.Eventually("the account has as much", func() error {
		attached := 0
		b.vpc.Account.View(0, func(tx *sim.Tx) {
			for _, e := range tx.Interfaces() {
				attached += len(e.V4)
			}
		})
		s, err := b.page()
		if err == nil && s.Addresses.Attached != attached {
			err = fmt.Errorf("the node has %d, the account %d", s.Addresses.Attached, attached)
		}
		return err
	})
	b.must(b.vpc.Account.Check())
}
