package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/health"
	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// uninstaller is a node's file system with the program that takes enipool off it.
type uninstaller struct {
	*cluster
	program, root string
	env           []string
}

// newUninstaller installs enipool into a folder.
func (c *cluster) newUninstaller(node, token string) uninstaller {
	c.t.Helper()
	bin := c.t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../../plugins/enipool-agent", "../../plugins/enipool").CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	u := uninstaller{c, filepath.Join(bin, "enipool-agent"), c.t.TempDir(), append(os.Environ(), "NODE_NAME="+node)}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "x",
		"clusters": []any{map[string]any{"name": "x", "cluster": map[string]any{"server": c.Config().Host, "certificate-authority-data": []byte(c.Config().CA)}}},
		"users":    []any{map[string]any{"name": "x", "user": map[string]any{"token": token}}},
		"contexts": []any{map[string]any{"name": "x", "context": map[string]any{"cluster": "x", "user": "x"}}},
	})
	c.must(err)
	c.must(os.WriteFile(u.root+"/kubeconfig", text, 0o600))
	c.must(os.WriteFile(u.root+"/agent.yaml", []byte("vpcCIDRs: [10.0.0.0/16]\ncloud: {endpoint: \"unix:///run/vpc.sock\"}\n"+
		"kubernetes: {kubeconfig: "+u.root+"/kubeconfig}\n"), 0o600))
	if out, err := exec.Command(u.program, "install", "--root", u.root, "--no-system-files", "--force", "--conflist-now").CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return u
}

// run uninstalls, and returns what it said and its exit code.
func (u uninstaller) run() (said string, code int) {
	u.t.Helper()
	cmd := exec.Command(u.program, "uninstall", "--root", u.root, "--config", u.root+"/agent.yaml")
	cmd.Env = u.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		u.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// tell lets an agent tell the cluster that its node is faulty, and ends it.
func (c *cluster) tell(node, token string) {
	c.t.Helper()
	n, err := enipool.New(enipool.Options{Node: node, Config: c.config(token), Taint: true})
	c.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	n.Report(health.Report{Faulty: true, Taint: true, Reason: health.SubnetExhausted, Message: "m", Capacity: 5})
	c.Eventually("condition, taint and resource", func() error { return c.shows(node, corev1.ConditionTrue, 2, "5") })
	stop()
	c.must(<-ended)
}

// others is a node without what changes by itself.
func (c *cluster) others(name string) *corev1.Node {
	c.t.Helper()
	n, err := c.admin.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	c.must(err)
	n.ResourceVersion, n.ManagedFields = "", nil
	for i := range n.Spec.Taints {
		n.Spec.Taints[i].TimeAdded = nil
	}
	return n
}

// It has the agent's rights and no more, under the policy that guards the nodes.
func TestUninstallingLeavesTheNodeAsItWasBeforeTheAgent(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	c.addNode("n1", corev1.ResourceList{"example.com/gpu": resource.MustParse("2")})
	c.must(patchNode(c.admin, "n1", "", `{"spec": {"taints": [`+otherTaint+`]}}`))
	before, token := c.others("n1"), c.agentToken("n1")
	u := c.newUninstaller("n1", token)
	for range 2 { // an agent may come and go again
		c.tell("n1", token)
		said, code := u.run()
		for _, want := range []string{"condition EnipoolAddressesUnavailable", "resource enipool.io/pod-addresses", "taint enipool.io/addresses-unavailable"} {
			if !strings.Contains(said, "removed   "+want+" of the Node n1\n") || code != 0 {
				t.Errorf("exit code %d, not said that it removed the %s:\n%s", code, want, said)
			}
		}
		if diff := cmp.Diff(before, c.others("n1")); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if said, code := u.run(); code != 0 || said != "ok        nothing of enipool is installed\n" {
			t.Errorf("again: exit code %d: %s", code, said)
		}
	}
}

func TestUninstallingWithoutTheAPIServerTakesTheFilesAndSaysWhatIsLeft(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	c.addNode("n1", nil)
	c.must(patchNode(c.admin, "n1", "", `{"spec": {"taints": [`+otherTaint+`]}}`))
	before, token := c.others("n1"), c.agentToken("n1")
	u := c.newUninstaller("n1", token)
	c.tell("n1", token)
	c.APIServer.Kill()
	said, code := u.run()
	if _, err := os.Stat(u.root + "/opt/cni/bin/enipool"); !os.IsNotExist(err) || code != 1 {
		t.Errorf("exit code %d, and the plugin is there: %v", code, err)
	}
	i := strings.Index(said, "\n  kubectl ")
	if i < 0 || !strings.Contains(said, "removed   /etc/cni/net.d/10-enipool.conflist") || !strings.Contains(said, "connection refused") || strings.Contains(said, token) {
		t.Fatalf("%s", said)
	}
	c.APIServer.Start()
	for _, line := range strings.Split(strings.TrimSpace(said[i:]), "\n") {
		c.must(c.shell(strings.TrimSpace(line)))
	}
	if diff := cmp.Diff(before, c.others("n1")); diff != "" {
		t.Errorf("by hand (-before +after):\n%s", diff)
	}
	if said, code := u.run(); code != 0 || !strings.Contains(said, "nothing of enipool") {
		t.Errorf("afterwards: exit code %d: %s", code, said)
	}
}

// shell runs a line as a person would, with the administrator's kubectl.
func (c *cluster) shell(line string) error {
	bin, err := kube.Assets()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+c.Kubeconfig("admin"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", line, err, out)
	}
	return nil
}

// The uninstallation finds its node and its rights where the agent does.
func TestTheUninstallationKnowsItsNode(t *testing.T) {
	env := uninstallation(t).Spec.Template.Spec.InitContainers[0].Env
	agent := pod(t).Containers[0].Env
	i := slices.IndexFunc(agent, func(e corev1.EnvVar) bool { return e.Name == "NODE_NAME" })
	if len(env) != 1 || i < 0 || !cmp.Equal(env[0], agent[i]) {
		t.Errorf("%+v, want what the agent has: %+v", env, agent)
	}
	if off := uninstallation(t).Spec.Template.Spec; off.AutomountServiceAccountToken != nil || off.ServiceAccountName != "" {
		t.Error("it has another account than the agent")
	}
}
