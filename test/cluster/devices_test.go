package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimant is a pod with a claim for an address. It does not ask for the resource too.
const claimant = `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %[1]s}
spec: {spec: {devices: {requests: [{name: address, exactly: {deviceClassName: pod-address.enipool.io}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s, enipool.io/pod-addresses: none}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: address, resourceClaimTemplateName: %[1]s}]
  containers: [{name: web, image: localhost/busybox:1, command: [httpd, -f, -p, "80", -h, /etc]}]
`

// The scheduler reserves addresses of the node's devices, for pods with claims and those that ask for the resource, and not one
// more than there are; a killed agent forgets none of them, and none is left when their pods are gone.
func TestTheSchedulerReservesAddressesOfDevices(t *testing.T) {
	t.Parallel()
	const room, asking = 6, 5
	c := start(t, "devices")
	n := c.addNode("devices-a")
	dra := strings.Replace(settings, "kubernetes:\n", "maxPods: 6\nkubernetes:\n  dra: true\n", 1)
	c.install(c.overlayOfDevices(dra))
	c.Eventually("the node shows its devices", func() error { return c.devicesHave(room) })
	if is := n.room(); is != "0" {
		c.t.Errorf("the Node has the resource too: %s", is)
	}

	c.Apply(fmt.Sprintf(claimant, "first") + "---\n" + fmt.Sprintf(web, asking))
	c.run(asking)
	c.Eventually("the pod with a claim is ready", func() error { return c.allReady("first", 1) }, c.warnings)
	c.everyAddressIsRight()
	c.Apply(fmt.Sprintf(claimant, "late"))
	c.Kubectl("scale", "deployment/web", fmt.Sprint("--replicas=", asking+1))
	c.Eventually("the scheduler refuses one more of both", func() error { return c.areRefused(2) })
	c.must(c.devicesHave(room))

	killed := n.killAgent()
	c.Kubectl("delete", "pod/first", "deployment/web", "--wait=false")
	n.agentIsBack(killed)
	c.Eventually("the pod that was refused has the room", func() error { return c.allReady("late", 1) }, c.warnings)
	c.Eventually("one address is reserved", func() error { return n.areReserved(1) })
	c.must(c.devicesHave(room))
	c.Kubectl("delete", "pod/late")
	c.Eventually("no address is reserved", func() error { return n.areReserved(0) })

	c.install(c.overlayOfDevices(strings.Replace(dra, "dra: true", "dra: false", 1)))
	c.Kubectl("--namespace=kube-system", "rollout", "restart", "daemonset/enipool-agent")
	c.Eventually("the Node counts in place of its devices", func() error {
		if slices, is := c.slices(), n.room(); len(slices) > 0 || is != fmt.Sprint(room) {
			return fmt.Errorf("%d slices, %q on the Node", len(slices), is)
		}
		return nil
	})
	c.Eventually("nothing is left on the node", func() error {
		left, err := os.ReadDir(n.Path("/var/lib/kubelet/plugins/enipool.io"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		return err
	})
}

// overlayOfDevices is the overlay with the component that devices take.
func (c *cluster) overlayOfDevices(agentConf string) string {
	c.t.Helper()
	dir := c.overlay(simulated, first, agentConf, "")
	component, err := filepath.Abs("../../conf/kubernetes/dra")
	c.must(err)
	component, err = filepath.Rel(dir, component)
	c.must(err)
	file := filepath.Join(dir, "kustomization.yaml")
	text, err := os.ReadFile(file)
	c.must(err)
	c.must(os.WriteFile(file, fmt.Appendf(text, "components: [%s]\n", component), 0o600))
	return dir
}

// slices are those of all nodes.
func (c *cluster) slices() []resourcev1.ResourceSlice {
	c.t.Helper()
	list, err := c.api.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
	c.must(err)
	return list.Items
}

// devicesHave returns nil if the devices of the only node have so many addresses together.
func (c *cluster) devicesHave(want int64) error {
	sum, text := int64(0), ""
	for _, s := range c.slices() {
		for _, d := range s.Spec.Devices {
			q := d.Capacity["addresses"].Value
			sum += q.Value()
			text += fmt.Sprintf(" %s has %s", d.Name, q.String())
		}
	}
	if sum != want {
		return fmt.Errorf("%d addresses:%s", sum, text)
	}
	return nil
}

// areRefused returns nil if so many pods have no node because no address can be reserved.
func (c *cluster) areRefused(want int) error {
	refused := slices.DeleteFunc(c.pods.now(), func(p sighting) bool {
		return p.Spec.NodeName != "" || !slices.ContainsFunc(p.Status.Conditions, func(is corev1.PodCondition) bool {
			return is.Type == corev1.PodScheduled && is.Reason == corev1.PodReasonUnschedulable && strings.Contains(is.Message, "cannot allocate all claims")
		})
	})
	if len(refused) != want {
		return fmt.Errorf("%d are", len(refused))
	}
	return nil
}

// areReserved returns nil if so many addresses are: in the claims that there are, and on the node.
func (n *node) areReserved(want int) error {
	claims, err := n.c.api.ResourceV1().ResourceClaims("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	allocated := slices.DeleteFunc(claims.Items, func(c resourcev1.ResourceClaim) bool { return c.Status.Allocation == nil })
	text, err := os.ReadFile(n.Path("/var/lib/kubelet/plugins/enipool.io/claims.json"))
	if prepared := strings.Count(string(text), `"uid"`); err == nil && (len(allocated) != want || prepared != want) {
		err = fmt.Errorf("%d claims are allocated, %d prepared", len(allocated), prepared)
	}
	return err
}
