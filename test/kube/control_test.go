package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// One control plane serves all; no case depends on another.
func TestAControlPlane(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	for name, test := range map[string]func(t *testing.T, c *Cluster){
		"serves its administrator":               itServes,
		"refuses users without rights":           itRefuses,
		"gives a service account what it may":    itKnowsServiceAccounts,
		"returns from an outage with all it had": itReturns,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func itServes(t *testing.T, c *Cluster) {
	if got := c.Kubectl("get", "--raw", "/readyz"); got != "ok" {
		t.Errorf("readyz: %q", got)
	}
	var version struct{ GitVersion string }
	if err := c.Get("/version", &version); err != nil || !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("version %q, %v", version.GitVersion, err)
	}
}

func itRefuses(t *testing.T, c *Cluster) {
	_, err := c.KubectlAs(c.Kubeconfig("nobody"), "get", "pods")
	if err == nil || !strings.Contains(err.Error(), `User "nobody" cannot list resource "pods"`) {
		t.Errorf("a user without rights: %v", err)
	}
}

func itKnowsServiceAccounts(t *testing.T, c *Cluster) {
	c.Kubectl("create", "serviceaccount", "agent", "--namespace=kube-system")
	config := c.ServiceAccountKubeconfig("kube-system", "agent")
	if _, err := c.KubectlAs(config, "get", "nodes"); err == nil || !strings.Contains(err.Error(), `"system:serviceaccount:kube-system:agent" cannot list`) {
		t.Errorf("before it may: %v", err)
	}
	c.Kubectl("create", "clusterrole", "agent", "--verb=list", "--resource=nodes")
	c.Kubectl("create", "clusterrolebinding", "agent", "--clusterrole=agent", "--serviceaccount=kube-system:agent")
	c.Eventually("the role binding counts", func() error {
		_, err := c.KubectlAs(config, "get", "nodes")
		return err
	})
}

func itReturns(t *testing.T, c *Cluster) {
	c.Kubectl("create", "configmap", "kept", "--from-literal=key=value")
	first := c.APIServer.Pid()
	c.APIServer.Kill()
	if err := c.serves(); err == nil {
		t.Error("it serves while it is away")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", first)); !errors.Is(err, os.ErrNotExist) || c.APIServer.Pid() != 0 {
		t.Errorf("process %d is still there: %v", first, err)
	}
	c.APIServer.Start()
	if got := c.Kubectl("get", "configmap", "kept", "--output=jsonpath={.data.key}"); got != "value" {
		t.Errorf("after the outage: %q", got)
	}
}

func TestTwoClustersAtOnceDoNotMeet(t *testing.T) {
	t.Parallel()
	a, b := Start(t, Options{}), Start(t, Options{})
	a.Kubectl("create", "namespace", "of-a")
	if out, err := b.TryKubectl("get", "namespace", "of-a"); err == nil || !strings.Contains(err.Error(), "NotFound") {
		t.Errorf("the other cluster knows it: %s %v", out, err)
	}
}

// A Deployment needs both: the one makes its pods, the other binds them.
func TestControllersAndSchedulerWork(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Scheduler: true, ControllerManager: true})
	c.Apply(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "fake"}}`)
	c.Kubectl("patch", "node", "fake", "--subresource=status", `--patch={"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
		"conditions": [{"type": "Ready", "status": "True"}]}}`)
	c.Kubectl("create", "deployment", "web", "--image=none", "--replicas=3")
	c.Eventually("three pods on the node", func() error {
		var pods struct{ Items []json.RawMessage }
		err := c.Get("/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dfake", &pods)
		if err == nil && len(pods.Items) != 3 {
			err = fmt.Errorf("%d pods", len(pods.Items))
		}
		return err
	})
}

// A program that ended by itself, with a reason, is not waited for.
func TestAProgramThatEndsTellsWhy(t *testing.T) {
	t.Parallel()
	Need(t)
	bin, err := Assets()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, bin: bin, dir: t.TempDir()}
	if err := os.Mkdir(c.path("log"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := c.program("kube-apiserver", func() []string { return []string{"--no-such-flag"} })
	p.ready = func() error { return errors.New("not yet") }
	if err := p.spawn(); err != nil {
		t.Fatal(err)
	}
	err = p.serves(p.life.Load())
	if err == nil || !strings.Contains(err.Error(), "it ended: exit status 1") || !strings.Contains(tail(p.Log(), 5), "unknown flag: --no-such-flag") {
		t.Errorf("%v; log: %s", err, tail(p.Log(), 5))
	}
	if p.Pid() != 0 {
		t.Errorf("it still has pid %d", p.Pid())
	}
}
