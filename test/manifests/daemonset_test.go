package manifests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func pod(t *testing.T) corev1.PodSpec {
	t.Helper()
	return one[*appsv1.DaemonSet](t).Spec.Template.Spec
}

// containers are the init container and the agent.
func containers(t *testing.T) []corev1.Container {
	t.Helper()
	spec := pod(t)
	return slices.Concat(spec.InitContainers, spec.Containers)
}

// What is in this list a person has agreed to.
func TestContainersSeeOnlyTheseFilesOfTheNode(t *testing.T) {
	paths := map[string]string{}
	for _, v := range pod(t).Volumes {
		switch {
		case v.HostPath != nil:
			paths[v.Name] = v.HostPath.Path
		case v.ConfigMap == nil || v.ConfigMap.Name != "enipool-agent":
			t.Errorf("volume %s is neither of the node nor the configuration", v.Name)
		}
	}
	var got []string
	for _, c := range containers(t) {
		for _, m := range c.VolumeMounts {
			if m.SubPath != "" {
				t.Errorf("%s: a part of a ConfigMap never changes", m.MountPath)
			}
			if from, ok := paths[m.Name]; ok {
				got = append(got, fmt.Sprintf("%s: %s at %s%s%s", c.Name, from, m.MountPath, either(m.ReadOnly, ", to read", ""),
					either(m.MountPropagation != nil, ", with mounts to come", "")))
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"agent: /etc/cni/net.d at /etc/cni/net.d",
		"agent: /proc/sys/net at /host/proc/sys/net",
		"agent: /run/enipool at /run/enipool",
		"agent: /run/netns at /run/netns, to read, with mounts to come",
		"agent: /run/netns at /var/run/netns, to read, with mounts to come",
		"agent: /var/lib/enipool at /var/lib/enipool",
		"install: /etc at /host/etc",
		"install: /opt/cni/bin at /host/opt/cni/bin",
		"install: /proc/sys/net at /host/proc/sys/net",
		"install: /run/enipool at /host/run/enipool",
		"install: /usr at /host/usr, to read",
		"install: /var/lib/enipool at /host/var/lib/enipool",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func either(is bool, a, b string) string {
	if is {
		return a
	}
	return b
}

func TestContainersHaveOnlyTheseRights(t *testing.T) {
	want := map[string][]corev1.Capability{
		"install": {"SYS_ADMIN", "NET_ADMIN", "DAC_OVERRIDE"},
		"agent":   {"NET_ADMIN", "DAC_OVERRIDE"},
	}
	for _, c := range containers(t) {
		s := c.SecurityContext
		got := *s
		got.Capabilities = nil
		no, yes := false, true
		if diff := cmp.Diff(corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name, diff)
		}
		if diff := cmp.Diff(&corev1.Capabilities{Add: want[c.Name], Drop: []corev1.Capability{"ALL"}}, s.Capabilities); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.Name, diff)
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.FieldRef == nil {
				t.Errorf("%s: %s comes from elsewhere than the pod", c.Name, e.Name)
			}
		}
	}
	spec := pod(t)
	if spec.HostPID || spec.HostIPC || len(spec.ImagePullSecrets) > 0 || spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%+v", spec)
	}
	for _, o := range manifests(t) {
		if s, ok := o.(*corev1.Secret); ok {
			t.Errorf("secret %s", s.Name)
		}
	}
}

// An agent has to be there before everything else, and to stay.
func TestTheAgentRunsOnEveryNodeWhateverIsWrongWithIt(t *testing.T) {
	spec := pod(t)
	if !spec.HostNetwork || spec.DNSPolicy != corev1.DNSDefault {
		t.Error("it needs the cluster's network, which it makes")
	}
	if diff := cmp.Diff([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, spec.Tolerations); diff != "" {
		t.Error(diff)
	}
	if spec.PriorityClassName != "system-node-critical" {
		t.Errorf("priority class %s", spec.PriorityClassName)
	}
	update := one[*appsv1.DaemonSet](t).Spec.UpdateStrategy
	if u := update.RollingUpdate; u == nil || u.MaxSurge.IntValue() != 0 || *u.MaxUnavailable != intstr.FromString("10%") {
		t.Errorf("%+v", update)
	}
	budget := named[*policyv1.PodDisruptionBudget](t, "enipool-agent")
	if diff := cmp.Diff(one[*appsv1.DaemonSet](t).Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Error(diff)
	}
}

// target is the memory that an agent with 250 pods may take.
const target = 48 << 20

func TestTheAgentHasRoomAndIsNotHeldUp(t *testing.T) {
	for _, c := range containers(t) {
		limit, request := c.Resources.Limits.Memory().Value(), c.Resources.Requests.Memory().Value()
		if request < target || limit < 2*target || !c.Resources.Limits.Cpu().IsZero() || c.Resources.Requests.Cpu().IsZero() {
			t.Errorf("%s: %+v", c.Name, c.Resources)
		}
	}
	agent := pod(t).Containers[0]
	for _, e := range agent.Env {
		if e.Name != "GOMEMLIMIT" {
			continue
		}
		at, limit := resource.MustParse(strings.TrimSuffix(e.Value, "B")), agent.Resources.Limits.Memory()
		if at.Value() < 2*target || at.Cmp(*limit) >= 0 {
			t.Errorf("GOMEMLIMIT %s, limit %s", e.Value, limit)
		}
	}
}

// The pages of the two probes are the agent's, which pkg/status/web tests: /healthz
// looks at nothing but the loop.
func TestProbesAskTheAgentOnTheNodeItself(t *testing.T) {
	agent := pod(t).Containers[0]
	for path, probe := range map[string]*corev1.Probe{"/healthz": agent.LivenessProbe, "/readyz": agent.ReadinessProbe} {
		if get := probe.HTTPGet; get.Path != path || get.Host != "127.0.0.1" || get.Port.IntVal != agent.Ports[0].ContainerPort {
			t.Errorf("%s: %+v", path, get)
		}
	}
	if p := agent.LivenessProbe; p.PeriodSeconds*p.FailureThreshold < 60 {
		t.Errorf("an agent of a busy node is ended after %d s", p.PeriodSeconds*p.FailureThreshold)
	}
}
