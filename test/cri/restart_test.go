package cri

import (
	"fmt"
	"strings"
	"testing"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestSandboxesOutliveARestartOfContainerd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testNode){
		"stopped": func(m *testNode) { m.Containerd.Stop() },
		"killed":  func(m *testNode) { m.Containerd.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegion(t, "restart-"+name)
			m := newNode(r, "a", plan{limits: small})
			p, q := m.run("web"), m.run("db", onPort(8080))
			netns, err := p.netns()
			m.must(err)
			end(m)
			m.must(p.pingFrom(netns, q.ip.String()))
			m.must(p.pingFrom(netns, internet))
			m.Containerd.Start()
			for _, p := range []*pod{p, q} {
				if is, err := p.status(); err != nil || is.Status.State != api.PodSandboxState_SANDBOX_READY || is.Status.Network.Ip != p.ip.String() {
					t.Errorf("after the restart: %v, %v", is, err)
				}
			}
			p.reach(q.ip.String(), internet)
			if late := m.run("late"); late.ip == p.ip || late.ip == q.ip {
				t.Errorf("%s was handed out twice", late.ip)
			}
			p.end()
			if got := m.stateOf(p); got != "cooling" {
				t.Errorf("after its end the address is %s", got)
			}
			q.reach(internet)
		})
	}
}

// killShim ends the process that holds a sandbox's containers, as the kernel does
// when memory runs out.
func (p *pod) killShim() {
	p.m.t.Helper()
	out := p.m.Run("sh", "-c", fmt.Sprintf(`for p in /proc/[0-9]*; do
	if tr "\0" " " 2>/dev/null <$p/cmdline | grep -q "^[^ ]*containerd-shim-runc-v2 .*-id %s "; then kill -9 ${p#/proc/}; echo killed; fi
done`, p.id))
	if strings.TrimSpace(out) != "killed" {
		p.m.t.Fatalf("the shim of %s: %q", p.config.Metadata.Name, out)
	}
}

// removeCgroups removes those of a container without processes that lost its shim:
// containerd 2.2 forgets them.
func (m *testNode) removeCgroups(container string) {
	m.t.Helper()
	m.Run("sh", "-c", "find /sys/fs/cgroup -depth -type d -path '*/"+container+"*' -exec rmdir {} +")
}

func TestASandboxWhoseShimWasKilledIsCleanedByItsStop(t *testing.T) {
	t.Parallel()
	m := newNode(newRegion(t, "shim"), "a", plan{limits: small})
	p, other := m.run("web", onPort(8080)), m.run("other")
	p.start("sleep", "1h")
	p.killShim()
	eventually(t, "the sandbox is not ready", func() error {
		is, err := p.status()
		if err == nil && is.Status.State != api.PodSandboxState_SANDBOX_NOTREADY {
			err = fmt.Errorf("it is %s", is.Status.State)
		}
		return err
	})
	if got := m.stateOf(p); got != "used" {
		t.Errorf("before the sandbox is stopped its address is %s", got)
	}
	next := m.run("web", again, onPort(8081))
	m.must(p.stop())
	if got := m.stateOf(p); got != "cooling" {
		t.Errorf("after its stop the address is %s", got)
	}
	eventually(t, "the sandbox is removed", p.remove) // once containerd believes that its container is gone
	m.removeCgroups(p.container)
	next.reach(other.ip.String(), internet)
}
