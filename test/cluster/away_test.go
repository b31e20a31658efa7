package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/test/kube"
	"github.com/enipool/enipool/test/lab"
)

// minute is how long the API server is away.
const minute = time.Minute

func TestTheAPIServerIsAwayForAMinute(t *testing.T) {
	t.Parallel()
	c := start(t, "away")
	a, b := c.addNode("away-a"), c.addNode("away-b")
	c.install(c.overlay(simulated, first, settings, ""))
	c.Apply(fmt.Sprintf(web, 20))
	c.run(20)
	before := c.web()

	c.controlPlaneGoes()
	gone := time.Now()
	// An agent starts anew without the API server, and so does a pod whose sandbox ended.
	a.endAgent()
	lost := a.loseSandbox(on(a, before))
	for _, n := range c.nodes {
		n.Eventually("its agent serves without the API server", n.healthy)
	}
	a.Eventually("the sandbox that ended is replaced", func() error { return a.replaced(lost) })
	for time.Since(gone) < minute {
		for _, p := range before {
			if p.Name == lost.Name {
				continue
			}
			if err := b.answers(p); err != nil {
				c.t.Errorf("%s after the API server went: %v", time.Since(gone).Round(time.Second), err)
			}
		}
		time.Sleep(time.Second)
	}
	c.controlPlaneIsBack()

	c.Kubectl("scale", "deployment/web", "--replicas=40")
	c.Eventually("40 web servers have a node", func() error {
		if bound := slices.DeleteFunc(c.web(), func(p sighting) bool { return p.Spec.NodeName == "" }); len(bound) != 40 {
			return fmt.Errorf("%d have", len(bound))
		}
		return nil
	}, c.warnings)
	for _, n := range c.nodes {
		n.Eventually("its kubelet hears of new pods", func() error { return n.hears(before) })
	}
	c.run(40)
	for _, p := range before {
		if is := c.find(p); is == nil || is.Status.PodIP != p.Status.PodIP && p.Name != lost.Name {
			c.t.Errorf("pod %s had %s and is now %+v", p.Name, p.Status.PodIP, is)
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
}

// controlPlaneGoes ends the API server, and those that would end soon because they can't
// renew their leases. If they stayed, and came back with what they knew, they would call
// nodes not ready that are, and be up to two minutes late for what is new: a watch that
// was refused comes back within one, is told that the state it asks for is older than the
// new server, and waits up to another one.
func (c *cluster) controlPlaneGoes() {
	for _, p := range []*kube.Program{c.ControllerManager, c.Scheduler, c.APIServer} {
		p.Kill()
	}
}

func (c *cluster) controlPlaneIsBack() {
	c.t.Helper()
	for _, p := range []*kube.Program{c.APIServer, c.ControllerManager, c.Scheduler} {
		p.Start()
	}
	c.pods = watchPods(c) // the first watch is as late as theirs would be
}

// hears returns nil unless none of the web servers that the node has got since is ready.
// A kubelet asks again up to a minute after it was refused.
func (n *node) hears(before []sighting) error {
	got := slices.DeleteFunc(on(n, n.c.web()), func(p sighting) bool {
		return slices.ContainsFunc(before, func(b sighting) bool { return b.UID == p.UID })
	})
	if len(got) > 0 && !slices.ContainsFunc(got, func(p sighting) bool { return isReady(p.Pod) }) {
		return fmt.Errorf("none of the %d is ready", len(got))
	}
	return nil
}

// A kubelet that starts admits the pods that run once more, by the room that its Node
// says there is; while the agent is away nobody else would write that again.
func TestPodsOutliveARestartOfTheKubelet(t *testing.T) {
	t.Parallel()
	c := start(t, "kubelet")
	n := c.addNode("kubelet-a")
	c.install(c.overlay(simulated, first, settings, ""))
	c.Apply(fmt.Sprintf(web, 12))
	c.run(12)
	before, room := c.web(), n.room()
	if room == "" || room == "0" {
		c.t.Fatalf("the node has room for %q pods", room)
	}
	for _, agent := range []string{"STOP", "CONT"} {
		n.Run("sh", "-c", "kill -"+agent+" $(pidof enipool-agent)")
		n.Kubelet.Stop()
		n.Kubelet.Start()
		n.WaitReady()
	}
	c.scale(14)
	for _, p := range before {
		if is := c.find(p); is == nil || is.Status.PodIP != p.Status.PodIP || is.Status.ContainerStatuses[0].RestartCount != 0 {
			c.t.Errorf("pod %s was %+v and is now %+v", p.Name, p.Status, is)
		}
	}
	if is := n.room(); is != room {
		c.t.Errorf("room for %s pods, had %s", is, room)
	}
}

// room is how many pods with addresses the scheduler may place on the node.
func (n *node) room() string {
	is := n.object()
	q := is.Status.Allocatable["enipool.io/pod-addresses"]
	return q.String()
}

// find returns the pod as it is now, or nil if it is gone.
func (c *cluster) find(p sighting) *sighting {
	for _, is := range c.pods.now() {
		if is.UID == p.UID {
			return &is
		}
	}
	return nil
}

// Eventually is the cluster's for what does not need the API server.
func (n *node) Eventually(what string, done func() error) {
	n.c.t.Helper()
	n.c.Eventually("node "+n.Name+": "+what, done)
}

func (n *node) healthy() error { return lab.Fine(n.Do, "http://127.0.0.1:9809/readyz") }

// answers asks a web server from the node.
func (n *node) answers(p sighting) error { return lab.Fine(n.Do, "http://"+p.Status.PodIP+"/hostname") }

// loseSandbox ends the process that holds the namespaces of the first pod, and
// returns the pod.
func (n *node) loseSandbox(pods []sighting) sighting {
	n.c.t.Helper()
	p := pods[0]
	n.Run("sh", "-c", fmt.Sprintf(`for p in /proc/[0-9]*; do
		grep -qs /pause $p/cmdline && grep -qs "pod%s" $p/cgroup && kill -9 ${p#/proc/} && exit
	done; exit 1`, strings.TrimSpace(string(p.UID))))
	return p
}

// replaced returns nil once the pod has another address than before.
func (n *node) replaced(p sighting) error {
	for _, a := range n.pool().Addresses {
		if a.Pod == p.Name && a.State == "used" && a.Address != p.address() {
			return nil
		}
	}
	return fmt.Errorf("pod %s has no other address than %s", p.Name, p.Status.PodIP)
}
