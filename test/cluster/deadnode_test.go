package cluster

import (
	"fmt"
	"slices"

	enipool "github.com/enipool/enipool/pkg/node"
)

// outlivesItsNode lets the node of the leading operator die while pods of the database are there, if any are, else the other node. People say so, and the
// addresses come to the node that is left. The pods of a node that nobody hears of run on: when it is there again it has
// these addresses no more, and the others as before.
func (db *database) outlivesItsNode() {
	db.t.Helper()
	dead, left := db.leader(), db.nodes[0]
	if dead == left {
		left = db.nodes[1]
	}
	if len(on(dead, db.list())) == 0 {
		dead, left = left, dead
	}
	gone := on(dead, db.list())
	restarts := dead.restarts()
	dead.die()
	db.Kubectl("taint", "node", dead.Name, "node.kubernetes.io/out-of-service=nodeshutdown:NoSchedule")
	for _, p := range gone {
		db.Kubectl("delete", "pod", p.Name, "--force", "--grace-period=0")
	}
	db.Eventually("its pods of the database are gone", func() error {
		for _, p := range gone {
			if db.find(p) != nil {
				return fmt.Errorf("pod %s %s is there", p.Name, p.UID)
			}
		}
		return nil
	})
	db.serves(left)
	for _, p := range db.list() {
		if p.Spec.NodeName != left.Name {
			db.t.Errorf("pod %s is on node %s, which is dead", p.Name, p.Spec.NodeName)
		}
	}

	dead.Containerd.Start()
	dead.Kubelet.Start()
	dead.agentIsBack(restarts)
	db.Kubectl("taint", "node", dead.Name, "node.kubernetes.io/out-of-service-")
	dead.WaitReady()
	db.serves(db.nodes...) // the callers on it too
	dead.eventually("it has no address of pods that are elsewhere", func() error {
		for _, p := range gone {
			all := dead.pool().Addresses
			if slices.ContainsFunc(all, func(a enipool.ReportAddress) bool { return a.Address == p.address() }) {
				return fmt.Errorf("its cache has %s: %+v", p.address(), all)
			}
		}
		return nil
	})
	db.Kubectl("--namespace=kube-system", "rollout", "status", "deployment/enipool-operator", "--timeout=3m")
}

// die ends all of the node that the cluster hears of, as when its kernel hangs: what pods run goes on.
func (n *node) die() {
	n.c.t.Helper()
	n.Kubelet.Kill()
	n.Containerd.Kill()
	n.Run("sh", "-c", "kill -9 $(pidof enipool-agent enipool-operator)")
}
