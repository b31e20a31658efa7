package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestUninstallLeavesANodeAsItWas(t *testing.T) {
	t.Parallel()
	c := start(t, "bye")
	n := c.addNode("bye-a")
	before, kernel := n.files(), n.kernel()
	installed := c.overlay(simulated, first, settings, "")
	c.install(installed)
	c.Apply(fmt.Sprintf(web, 3))
	c.run(3)
	c.Kubectl("delete", "deployment/web", "--wait")
	n.eventually("no pod has an address", func() error {
		if used := n.used(); sum(used) > 0 {
			return fmt.Errorf("used by ENI: %v", used)
		}
		return nil
	})

	c.Kubectl("apply", "--server-side", "--force-conflicts", "--kustomize="+c.overlay("uninstall", first, settings, ""))
	c.Kubectl("--namespace=kube-system", "rollout", "status", "daemonset/enipool-agent", "--timeout=2m")
	c.Kubectl("delete", "--kustomize="+installed)
	if diff := cmp.Diff(before, n.files()); diff != "" {
		c.t.Errorf("files of the node, -before +after:\n%s", diff)
	}
	if diff := cmp.Diff(kernel, n.kernel()); diff != "" {
		c.t.Errorf("kernel of the node, -before +after:\n%s", diff)
	}
	is := n.object()
	_, offered := is.Status.Capacity[enipool.Resource]
	told := slices.ContainsFunc(is.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == enipool.Condition })
	if offered || told {
		c.t.Errorf("the Node still has capacity %v and conditions %+v", is.Status.Capacity, is.Status.Conditions)
	}
	if left := strings.TrimSpace(c.Kubectl("get", "all,configmap,serviceaccount,poddisruptionbudget", "--all-namespaces",
		"--selector=app.kubernetes.io/part-of=enipool", "--output=name")); left != "" {
		c.t.Errorf("the cluster still has\n%s", left)
	}
}

// files are those where enipool may have left some.
func (n *node) files() string {
	return n.Run("sh", "-c", "find /opt /etc /var/lib/enipool -type f 2>/dev/null | sort; true")
}

// kernel is what the node's has of what enipool writes there.
func (n *node) kernel() string {
	return n.Run("sh", "-c", `ip rule; ip -6 rule; ip route show table all proto 69; ip route show table all proto 70
		nft list tables | grep enipool; iptables-save 2>/dev/null | grep ENIPOOL; ls /sys/fs/bpf/enipool 2>/dev/null; true`)
}
