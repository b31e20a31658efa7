package cri

import (
	"strings"
	"testing"
)

func TestPodsReachEachOtherAndGetAddressesInENIOrder(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "reach")
	a, b := newNode(r, "a", plan{limits: tiny, minPool: 6}), newNode(r, "b", plan{limits: tiny})
	a.poolOf(6)                       // three ENIs are there to choose from
	pods := a.runInENIOrder("pod", 5) // two ENIs are full then, the third one half
	far := b.run("far")
	for _, p := range pods {
		p.reach(pods[0].ip.String(), pods[4].ip.String(), far.ip.String(), b.primary().String(), internet)
		far.reach(p.ip.String())
	}
}

func TestAContainerHasTheAddressOfItsPodAndReachesAnotherNodes(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "container")
	a, b := newNode(r, "a", plan{limits: small}), newNode(r, "b", plan{limits: small})
	p, far := a.run("near"), b.run("far")
	p.start("sleep", "1h")
	far.start("httpd", "-f", "-p", "80", "-h", "/bin")
	if out, err := p.exec("ping", "-c", "1", "-W", "5", far.ip.String()); err != nil {
		t.Errorf("ping: %v\n%s", err, out)
	}
	if out, err := p.exec("ip", "-4", "-o", "addr", "show", "eth0"); err != nil || !strings.Contains(out, " "+p.ip.String()+"/32 ") {
		t.Errorf("the container has the address %q, %v; want %s", out, err, p.ip)
	}
	eventually(t, "the other pod's web server answers", func() error { return p.do(func() error { return get(far.ip.String() + ":80") }) })
}

// A kubelet stops and removes again whenever it is not sure, and each stop of
// containerd is a DEL.
func TestStopAndRemoveGiveTheAddressBackAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	r := newRegion(t, "stop")
	m := newNode(r, "a", plan{limits: small})
	p, other := m.run("web"), m.run("other")
	for _, step := range []struct {
		what string
		do   func() error
	}{{"stop", p.stop}, {"a second stop", p.stop}, {"remove", p.remove}, {"a second remove", p.remove}} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := m.stateOf(p); got != "cooling" {
			t.Errorf("after %s the address %s is %s", step.what, p.ip, got)
		}
	}
	if got := m.stateOf(other); got != "used" {
		t.Errorf("the address of another pod is %s", got)
	}
	if again := m.run("web"); again.ip == p.ip {
		t.Errorf("%s was handed out again although it has to rest", p.ip)
	}
}

// stateOf returns the state of the pod's address in the pool.
func (m *testNode) stateOf(p *pod) string {
	m.t.Helper()
	pool, err := m.pool()
	m.must(err)
	for _, a := range pool.Addresses {
		if a.Address == p.ip {
			return a.State
		}
	}
	return "missing"
}
