package operated

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
)

// bed is a cluster of one node.
type bed struct {
	*testing.T
	api  *kube.Cluster
	vpc  *lab.VPC
	node isolate.Namespace
	dir  string
	bin  string
	name string // one word, of the namespaces
	pods map[string]*pod
}

// pod is one that is bound to the node.
type pod struct {
	uid  string
	ns   nettest.Netns
	addr netip.Addr // zero as long as it has none
}

// programs builds what ships, once for all tests, and returns the folder.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "..", ".build", "operated"))
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-o", dir, "../../plugins/enipool", "../../plugins/enipool-agent", "../../plugins/enipool-operator").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, err
})

func newBed(t *testing.T, name string, reuse sim.Reuse) *bed {
	t.Helper()
	nettest.Need(t)
	kube.Need(t)
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, api: kube.Start(t, kube.Options{}), dir: lab.Dir(t), bin: bin, name: name, pods: map[string]*pod{}}
	b.api.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/crds")
	b.api.Kubectl("apply", "--server-side", "--kustomize=../../conf/kubernetes/operator")
	b.established()
	b.vpc = lab.NewVPC(t, name, sim.Options{MTU: 1500, Reuse: reuse}, lab.V4)
	b.node, err = b.vpc.AddNode(sim.NodeSpec{Name: "n1", Subnet: lab.Subnet.ID, New: []string{lab.Subnet.ID}, Limits: eni.Limits{ENIs: 4, V4: 10}}, lab.Subnet)
	b.must(err)
	b.reach()
	zone := ""
	b.vpc.Account.View(0, func(tx *sim.Tx) { zone = tx.Subnets()[0].Zone })
	b.api.Apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": %q}},
		"spec": {"providerID": "sim:///%s/n1"}}`, zone, zone))
	return b
}

// kinds are the CRDs.
var kinds = []string{"crd/nodenetworks.enipool.io", "crd/subnets.enipool.io"}

// established waits until the API server serves the kinds.
func (b *bed) established() {
	b.Helper()
	b.api.Kubectl(append([]string{"wait", "--for=condition=Established"}, kinds...)...)
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

// run starts a program with a configuration. name is that of its files.
func (b *bed) run(name, program, conf string, in lab.Do) *lab.Process {
	b.Helper()
	file := filepath.Join(b.dir, name+".yaml")
	b.must(os.WriteFile(file, []byte(conf), 0o600))
	log, err := os.OpenFile(b.logOf(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	b.must(err)
	defer log.Close()
	cmd := exec.Command(filepath.Join(b.bin, program), "--config", file)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := lab.Start(cmd, in)
	b.must(err)
	b.Cleanup(func() {
		state := "was alive"
		if !p.Alive() {
			state = p.Cmd.ProcessState.String()
		} else if !p.Stop(30 * time.Second) {
			state = "did not end"
		}
		if b.Failed() {
			b.Logf("%s (%s) said:\n%s", name, state, b.said(name))
		}
	})
	return p
}

func (b *bed) logOf(name string) string { return filepath.Join(b.dir, name+".log") }

// said returns all that the programs of that name have logged.
func (b *bed) said(name string) string {
	text, _ := os.ReadFile(b.logOf(name))
	return string(text)
}

// operator runs an operator with the rights that its account has. It calls the cloud through a door of its own.
func (b *bed) operator(name string) (*lab.Process, *door) {
	b.Helper()
	socket := filepath.Join(b.dir, name+".sock")
	d := &door{account: b.vpc.Account.Handler(), calls: map[string]int{}}
	_, err := b.vpc.Serve(socket, d)
	b.must(err)
	b.Cleanup(d.open) // before the account is closed, which waits for the calls
	return b.run(name, "enipool-operator", fmt.Sprintf("cloud: {endpoint: 'unix://%s', cluster: blue, instance: n1, subnets: [%s], describe: 10s}\nsettle: 1s\nlisten: ''\nkubeconfig: %s\n",
		socket, lab.Subnet.ID, b.api.ServiceAccountKubeconfig("kube-system", "enipool-operator")), func(fn func() error) error { return fn() }), d
}

// agent runs the node's agent. It has no way to the cloud: nothing of it is in its file.
func (b *bed) agent() *lab.Process {
	b.Helper()
	return b.run("agent", "enipool-agent", fmt.Sprintf("node: n1\ncache: %[1]s/node.cache\nstate: %[1]s/agent.json\nvpcCIDRs: [%[2]s]\ncloud: {provider: operator}\n"+
		"kubernetes: {enabled: true, kubeconfig: %[3]s}\npool: {batch: 4, stable: 5s, burstWindow: 1s, delay: 0s, releaseInterval: 1s}\ncoolDown: 1s\nlisten: ''\nmaxPods: 30\n", b.dir, lab.V4, b.api.Kubeconfig("admin")), b.node.Do)
}

// bind makes pods that are bound to the node.
func (b *bed) bind(names ...string) {
	b.Helper()
	for _, name := range names {
		b.api.Apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "default"},
			"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "none:1"}]}}`, name))
		uid := b.api.Kubectl("get", "pod", name, "--output=jsonpath={.metadata.uid}")
		b.pods[name] = &pod{uid: uid, ns: nettest.NewNetns(b.T, b.name+"-"+name)}
	}
}

// start gives bound pods their network.
func (b *bed) start(names ...string) {
	b.Helper()
	for _, name := range names {
		var out string
		b.api.Eventually("an address for "+name, func() (err error) { // a kubelet tries again, too
			out, err = b.call("ADD", name)
			return err
		})
		var result struct {
			IPs []struct{ Address netip.Prefix }
		}
		b.must(json.Unmarshal([]byte(out), &result))
		if len(result.IPs) != 1 {
			b.Fatalf("pod %s got %s", name, out)
		}
		b.pods[name].addr = result.IPs[0].Address.Addr()
	}
}

// up is bind and start.
func (b *bed) up(names ...string) {
	b.Helper()
	b.bind(names...)
	b.start(names...)
}

// end takes the network from pods, as a kubelet does that may not reach the API server.
func (b *bed) end(names ...string) {
	b.Helper()
	for _, name := range names {
		_, err := b.call("DEL", name)
		b.must(err)
		delete(b.pods, name)
	}
}

// remove deletes the objects of pods.
func (b *bed) remove(names ...string) {
	b.Helper()
	b.api.Kubectl(append([]string{"delete", "pod", "--grace-period=0", "--force"}, names...)...)
}

// call calls the plugin for a pod as a runtime does, and returns what it says.
func (b *bed) call(command, name string) (string, error) {
	b.Helper()
	p := b.pods[name]
	cmd := exec.Command(filepath.Join(b.bin, "enipool"))
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+command, "CNI_CONTAINERID="+name, "CNI_IFNAME=eth0", "CNI_NETNS="+p.ns.Path, "CNI_PATH="+b.bin,
		fmt.Sprintf("CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_UID=%s", name, p.uid))
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"enipool","cachePath":"%s/node.cache","waitForAddress":"60s"}`, b.dir))
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	err := b.node.Do(cmd.Run)
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", command, name, err, &out, &log)
	}
	return out.String(), err
}
