package kube

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/enipool/enipool/pkg/isolate"
)

// startControlPlane starts what the options ask for; each waits for what it needs.
func (c *Cluster) startControlPlane(o Options) {
	c.t.Helper()
	c.etcd = c.program("etcd", c.etcdFlags)
	c.etcd.Start()
	c.APIServer = c.program("kube-apiserver", func() []string { return c.apiServerFlags(o) })
	c.APIServer.ready = c.serves
	c.APIServer.Start()
	if o.ControllerManager {
		config := c.Kubeconfig("system:kube-controller-manager", "system:masters")
		c.ControllerManager = c.program("kube-controller-manager", func() []string { return c.controllerFlags(config) })
		c.ControllerManager.Start()
	}
	if o.Scheduler {
		config := c.Kubeconfig("system:kube-scheduler")
		c.Scheduler = c.program("kube-scheduler", func() []string { return schedulerFlags(config) })
		c.Scheduler.Start()
	}
}

// program is one of the control plane, in the namespaces of the test.
func (c *Cluster) program(name string, flags func() []string) *Program {
	return &Program{t: c.t, name: name, log: c.path("log", name), enter: isolate.OnThread,
		command: func() *exec.Cmd { return exec.Command(filepath.Join(c.bin, name), flags()...) }}
}

func (c *Cluster) etcdFlags() []string {
	clients, peers := "http://"+c.host+":2379", "http://"+c.host+":2380"
	return []string{"--name=test", "--data-dir=" + c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=test=" + peers}
}

func (c *Cluster) apiServerFlags(o Options) []string {
	flags := []string{
		"--etcd-servers=http://" + c.host + ":2379",
		// The address is not for others: no endpoint of the service "kubernetes".
		"--bind-address=" + c.host, "--advertise-address=" + c.host, "--secure-port=6443", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceNet,
		"--cert-dir=" + c.dir, "--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"), "--token-auth-file=" + c.path("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("accounts.crt"), "--service-account-signing-key-file=" + c.path("accounts.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP", "--egress-selector-config-file=" + c.route.config,
		fmt.Sprintf("--enable-priority-and-fairness=%t", o.Fairness),
	}
	if !o.ControllerManager {
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	return flags
}

// controllerFlags give the controllers every right: theirs are not what is tested.
func (c *Cluster) controllerFlags(config string) []string {
	return []string{"--kubeconfig=" + config, "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file=" + c.path("accounts.key"), "--root-ca-file=" + c.path("ca.crt"),
		"--allocate-node-cidrs=false", "--kube-api-qps=200", "--kube-api-burst=400"}
}

func schedulerFlags(config string) []string {
	return []string{"--kubeconfig=" + config, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"}
}
