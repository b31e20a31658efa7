package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/enipool/enipool/test/kube"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// dial connects to containerd. After a reboot its socket is another.
func (m *testNode) dial() {
	m.t.Helper()
	if m.conn != nil {
		m.conn.Close()
	}
	conn, err := grpc.NewClient("unix://"+m.Path("/run/containerd/containerd.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	m.must(err)
	m.conn, m.cri = conn, api.NewRuntimeServiceClient(conn)
}

// ask makes one call of the CRI. While containerd starts it waits.
func ask[Q, A any](method func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return method(ctx, q, grpc.WaitForReady(true))
}

// pod is a sandbox on a node.
type pod struct {
	m         *testNode
	config    *api.PodSandboxConfig
	id        string // of the sandbox
	ip        netip.Addr
	container string // its id, if there is one
}

// option changes what a pod is like.
type option func(*api.PodSandboxConfig)

func newConfig(name string, options ...option) *api.PodSandboxConfig {
	c := &api.PodSandboxConfig{Hostname: name, Linux: &api.LinuxPodSandboxConfig{},
		Metadata: &api.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name}}
	for _, change := range options {
		change(c)
	}
	return c
}

// create runs the pod's sandbox.
func (p *pod) create() error {
	made, err := ask(p.m.cri.RunPodSandbox, &api.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		return fmt.Errorf("run sandbox %s: %w", p.config.Metadata.Name, err)
	}
	p.id = made.PodSandboxId
	return nil
}

// try runs a sandbox and asks for its address.
func (m *testNode) try(name string, options ...option) (*pod, error) {
	p := &pod{m: m, config: newConfig(name, options...)}
	if err := p.create(); err != nil {
		return nil, err
	}
	is, err := p.status()
	if err != nil {
		return nil, err
	}
	p.ip, err = netip.ParseAddr(is.Status.GetNetwork().GetIp())
	return p, err
}

// run runs a sandbox, which may not fail.
func (m *testNode) run(name string, options ...option) *pod {
	m.t.Helper()
	p, err := m.try(name, options...)
	m.must(err)
	m.keep(p)
	return p
}

// keep remembers a pod, which is removed at the end if the test does not.
func (m *testNode) keep(p *pod) { m.pods[p.id], m.had[p.ip] = p, true }

func (p *pod) status() (*api.PodSandboxStatusResponse, error) {
	return ask(p.m.cri.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: p.id, Verbose: true})
}

func (p *pod) stop() error {
	_, err := ask(p.m.cri.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: p.id})
	return err
}

func (p *pod) remove() error {
	_, err := ask(p.m.cri.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: p.id})
	if err == nil {
		delete(p.m.pods, p.id)
	}
	return err
}

// end stops and removes the pod.
func (p *pod) end() {
	p.m.t.Helper()
	p.m.must(p.stop())
	p.m.must(p.remove())
}

// start starts a container with a command of busybox.
func (p *pod) start(command ...string) {
	p.m.t.Helper()
	made, err := ask(p.m.cri.CreateContainer, &api.CreateContainerRequest{PodSandboxId: p.id, SandboxConfig: p.config,
		Config: &api.ContainerConfig{Metadata: &api.ContainerMetadata{Name: "main"}, Command: command, Image: &api.ImageSpec{Image: kube.BusyboxImage}}})
	p.m.must(err)
	p.container = made.ContainerId
	_, err = ask(p.m.cri.StartContainer, &api.StartContainerRequest{ContainerId: p.container})
	p.m.must(err)
}

// exec runs a command in the container and returns what it printed.
func (p *pod) exec(command ...string) (string, error) {
	r, err := ask(p.m.cri.ExecSync, &api.ExecSyncRequest{ContainerId: p.container, Cmd: command, Timeout: int64(patience.Seconds())})
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%v: exit %d: %s%s", command, r.ExitCode, r.Stdout, r.Stderr)
	}
	return string(r.GetStdout()), err
}

// netns returns the path of the pod's network namespace on its node.
func (p *pod) netns() (string, error) {
	is, err := p.status()
	if err != nil {
		return "", err
	}
	var info struct {
		RuntimeSpec struct {
			Linux struct{ Namespaces []struct{ Type, Path string } }
		}
	}
	if err := json.Unmarshal([]byte(is.Info["info"]), &info); err != nil {
		return "", err
	}
	for _, ns := range info.RuntimeSpec.Linux.Namespaces {
		if ns.Type == "network" {
			return strings.TrimPrefix(ns.Path, "/var"), nil // /var/run is a link
		}
	}
	return "", errors.New("the sandbox has no network namespace")
}

// in runs a function in a pod's network namespace, by its path on the node.
func (m *testNode) in(netns string, fn func() error) error {
	f, err := os.Open(m.Path(netns))
	if err != nil {
		return err
	}
	defer f.Close()
	return isolate.In(f, fn)
}

// do runs a function in the pod's network namespace.
func (p *pod) do(fn func() error) error {
	netns, err := p.netns()
	if err != nil {
		return err
	}
	return p.m.in(netns, fn)
}

// ping asks for one answer of another address, from the pod's namespace.
func (p *pod) ping(to string) error {
	netns, err := p.netns()
	if err != nil {
		return err
	}
	return p.pingFrom(netns, to)
}

// pingFrom is ping without containerd, which knows the namespace.
func (p *pod) pingFrom(netns, to string) error {
	var out []byte
	err := p.m.in(netns, func() (err error) {
		out, err = exec.Command("ping", "-c", "1", "-W", "5", to).CombinedOutput()
		return err
	})
	if err != nil {
		return fmt.Errorf("%s (%s) does not reach %s: %w: %s", p.config.Metadata.Name, p.ip, to, err, out)
	}
	return nil
}

// reach wants the pod to reach all addresses.
func (p *pod) reach(to ...string) {
	p.m.t.Helper()
	for _, address := range to {
		if err := p.ping(address); err != nil {
			p.m.t.Error(err)
		}
	}
}
