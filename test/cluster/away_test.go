package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

	c.APIServer.Kill()
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
				t.Errorf("%s after the API server went: %v", time.Since(gone).Round(time.Second), err)
			}
		}
		time.Sleep(time.Second)
	}
	c.APIServer.Start()

	c.scale(40)
	for _, p := range before {
		if is := c.find(p); is == nil || is.Status.PodIP != p.Status.PodIP && p.Name != lost.Name {
			t.Errorf("pod %s had %s and is now %+v", p.Name, p.Status.PodIP, is)
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
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
		t.Fatalf("the node has room for %q pods", room)
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
			t.Errorf("pod %s was %+v and is now %+v", p.Name, p.Status, is)
		}
	}
	if is := n.room(); is != room {
		t.Errorf("room for %s pods, had %s", is, room)
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

// get asks a page in the node's network.
func (n *node) get(url string) error {
	dial := func(ctx context.Context, network, at string) (conn net.Conn, err error) {
		err = n.Do(func() error { conn, err = new(net.Dialer).DialContext(ctx, network, at); return err })
		return conn, err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

func (n *node) healthy() error { return n.get("http://127.0.0.1:9809/readyz") }

// answers asks a web server from the node.
func (n *node) answers(p sighting) error { return n.get("http://" + p.Status.PodIP + "/hostname") }

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
