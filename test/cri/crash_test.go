package cri

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An ADD that waits outlives its containerd, gets an address, finds nobody to tell
// and gives it back.
func TestContainerdKilledWhileAnAddWaitsLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newNode(newRegion(t, "waits"), "a", plan{limits: eni.Limits{ENIs: 2, V4: 3}})
	m.publish(strings.Replace(m.conflist(), `"waitForAddress": "5s"`, `"waitForAddress": "1m"`, 1)) // the machine may be slow
	m.run("first")
	m.agent.Stop()
	m.run("second")
	failed := make(chan error)
	go func() { _, err := m.try("third"); failed <- err }()
	eventually(t, "an ADD waits", func() error { return m.waiting(1) })
	m.Containerd.Kill()
	if err := <-failed; err == nil {
		t.Error("a dead containerd made a sandbox")
	}
	m.agent.Start()
	eventually(t, "the ADD is over", func() error { return errors.Join(m.waiting(0), m.logged("add undone")) })
	m.wantUsed(2)
	m.Containerd.Start()
	m.run("third", again).reach(internet)
	m.endUnknown()
	m.wantUsed(3)
}

// waiting returns nil while so many ADDs wait for an address.
func (m *testNode) waiting(n int) error {
	entries, err := os.ReadDir(m.Path(m.cachePath() + ".waiters"))
	if err == nil && len(entries) != n {
		err = fmt.Errorf("%d wait", len(entries))
	}
	return err
}

// logged returns nil if the plugin has said so.
func (m *testNode) logged(words string) error {
	text, err := os.ReadFile(m.Path("/var/log/enipool.log"))
	if err == nil && !strings.Contains(string(text), words) {
		err = fmt.Errorf("the plugin has not said %q", words)
	}
	return err
}

// again makes a pod the kubelet's second try.
func again(c *api.PodSandboxConfig) { c.Metadata.Attempt = 1 }

// wantUsed waits until so many addresses are used.
func (m *testNode) wantUsed(n int) {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("%d addresses are used", n), func() error {
		if states := m.count(); states["used"] != n {
			return fmt.Errorf("they are %v", states)
		}
		return nil
	})
}

// When containerd dies after our ADD and before the chain has come to its end, no
// DEL follows until somebody asks for one. A kubelet does; without it a GC takes the
// address back, and without that the agent does when the sandbox is gone.
func TestContainerdKilledAfterOurAddLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, reclaim := range map[string]func(m *testNode, netns string){
		"DEL":     func(m *testNode, _ string) { m.endUnknown() },
		"GC":      func(m *testNode, _ string) { m.gc() },
		"reclaim": func(m *testNode, netns string) { m.Run("ip", "netns", "del", netns) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newNode(newRegion(t, "crash-"+name), "a", plan{limits: small})
			other := m.run("other")
			netns := m.killAfterAdd("web")
			m.Containerd.Start()
			m.publish(m.conflist())
			web := m.run("web", again)
			m.wantUsed(3) // what may still run keeps its address
			reclaim(m, netns)
			m.wantUsed(2)
			web.reach(other.ip.String(), internet)
			m.endUnknown()
		})
	}
}

// hold is a plugin whose ADD does not come to an end.
const hold = `#!/bin/sh
[ "$CNI_COMMAND" = ADD ] || exit 0
echo "${CNI_NETNS##*/} $$" >/run/held
exec sleep 1h
`

// killAfterAdd kills containerd when it has had our result for a pod and waits for
// another plugin's. It returns the name of the pod's network namespace.
func (m *testNode) killAfterAdd(name string) (netns string) {
	m.t.Helper()
	m.write("/opt/cni/bin/hold", hold)
	m.must(os.Chmod(m.Path("/opt/cni/bin/hold"), 0o755))
	m.publish(strings.Replace(m.conflist(), "    }\n  ]", "    },\n    {\"type\": \"hold\"}\n  ]", 1))
	failed := make(chan error)
	go func() { _, err := m.try(name); failed <- err }()
	var pid int
	eventually(m.t, "an ADD hangs", func() error {
		text, err := os.ReadFile(m.Path("/run/held"))
		if err == nil {
			_, err = fmt.Sscan(string(text), &netns, &pid)
		}
		return err
	})
	m.Containerd.Kill()
	if err := <-failed; err == nil {
		m.t.Error("a dead containerd made a sandbox")
	}
	m.Run("kill", fmt.Sprint(pid))
	return netns
}

// endUnknown stops and removes the sandboxes that are no pod's, as a kubelet does.
func (m *testNode) endUnknown() {
	m.t.Helper()
	list, err := ask(m.cri.ListPodSandbox, &api.ListPodSandboxRequest{})
	m.must(err)
	for _, s := range list.Items {
		if m.pods[s.Id] == nil {
			(&pod{m: m, id: s.Id}).end()
		}
	}
}

// gc runs our GC with the sandboxes of the pods, as other runtimes do.
func (m *testNode) gc() {
	m.t.Helper()
	var list struct {
		Name    string
		Plugins []map[string]any
	}
	m.must(json.Unmarshal([]byte(m.conflist()), &list))
	valid := []map[string]string{}
	for id := range m.pods {
		valid = append(valid, map[string]string{"containerID": id, "ifname": "eth0"})
	}
	conf := list.Plugins[0]
	conf["name"], conf["cniVersion"], conf["cni.dev/valid-attachments"] = list.Name, "1.1.0", valid
	text, err := json.Marshal(conf)
	m.must(err)
	m.write("/run/gc.json", string(text))
	m.Run("sh", "-c", "CNI_COMMAND=GC CNI_PATH=/opt/cni/bin /opt/cni/bin/enipool </run/gc.json")
}

// A crash among many starts hits each of them elsewhere.
func TestContainerdKilledAmongManyStartsLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newNode(newRegion(t, "many"), "a", plan{limits: small})
	delete(m.before, runtimeTraces) // containerd 1.6 forgets shims that it was starting
	const count = 10
	pods := make([]*pod, count)
	var started atomic.Int32
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = all(count, func(i int) (err error) {
			pods[i], err = m.try(fmt.Sprintf("pod%d", i))
			started.Add(1)
			return err
		})
	}()
	eventually(t, "some have started", func() error {
		if n := started.Load(); n < 3 {
			return fmt.Errorf("%d have", n)
		}
		return nil
	})
	m.Containerd.Kill()
	<-over
	m.Containerd.Start()
	for _, p := range pods {
		if p != nil {
			m.keep(p)
		}
	}
	m.endUnknown()
	m.wantUsed(len(m.pods))
	for _, p := range m.pods {
		p.reach(internet)
	}
}
