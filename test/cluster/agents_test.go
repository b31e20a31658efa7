package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// agent returns the pod of the node's agent.
func (n *node) agent() corev1.Pod {
	n.c.t.Helper()
	list, err := n.c.api.CoreV1().Pods("kube-system").List(n.c.t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/name=enipool-agent", FieldSelector: "spec.nodeName=" + n.Name})
	n.c.must(err)
	if len(list.Items) != 1 {
		n.c.t.Fatalf("node %s has %d agents", n.Name, len(list.Items))
	}
	return list.Items[0]
}

// restarts is how often the kubelet has started the agent again.
func (n *node) restarts() int32 {
	n.c.t.Helper()
	var count int32
	for _, s := range n.agent().Status.ContainerStatuses {
		count += s.RestartCount
	}
	return count
}

// killAgent ends the node's agent as a kernel short of memory does, and returns its
// restarts before.
func (n *node) killAgent() int32 {
	n.c.t.Helper()
	before := n.restarts()
	n.endAgent()
	return before
}

func (n *node) endAgent() { n.Run("sh", "-c", "kill -9 $(pidof enipool-agent)") }

// agentIsBack waits until the killed agent has been started again.
func (n *node) agentIsBack(before int32) {
	n.c.t.Helper()
	n.c.Eventually("the agent of node "+n.Name+" is back", func() error {
		pod := n.agent()
		if now := n.restarts(); now <= before || !isReady(&pod) {
			return fmt.Errorf("restarts: %d before, %d now; ready: %t", before, now, isReady(&pod))
		}
		return nil
	})
}
