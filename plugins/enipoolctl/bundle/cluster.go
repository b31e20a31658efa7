package bundle

import (
	"context"
	"fmt"
	"slices"

	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
	corev1 "k8s.io/api/core/v1"
)

const (
	// mostPods is of how many pods of a program the logs are packed: the worst ones.
	mostPods = 5

	// logTail is how many lines of a container's log are packed.
	logTail = "3000"
)

// ofCluster are the parts of a cluster. What its pods are is asked for at once, for their logs are parts too.
func ofCluster(ctx context.Context, api *cluster.API, release string) []part {
	get := func(name, path string, query ...string) part {
		return part{name, func(ctx context.Context) ([]byte, error) { return api.Raw(ctx, path, query...) }}
	}
	kinds, space := "/apis/enipool.io/v1alpha1/", "/namespaces/"+api.Namespace
	list := []part{
		{"versions.txt", func(context.Context) ([]byte, error) { return tellVersions(release) }},
		get("version.json", "/version"),
		get("nodes.json", "/api/v1/nodes"),
		get("nodenetworks.json", kinds+"nodenetworks"),
		get("subnets.json", kinds+"subnets"),
		get("podsubnettopologies.json", kinds+"podsubnettopologies"),
		get("addressclaims.json", kinds+"addressclaims"),
		get("daemonsets.json", "/apis/apps/v1"+space+"/daemonsets"),
		get("deployments.json", "/apis/apps/v1"+space+"/deployments"),
		get("leases.json", "/apis/coordination.k8s.io/v1"+space+"/leases"),
		get("configmaps.json", "/api/v1"+space+"/configmaps", "labelSelector", "app.kubernetes.io/part-of=enipool"),
		get("events.json", "/api/v1"+space+"/events"),
		get("events-of-objects.json", "/api/v1/namespaces/default/events"),
		get("events-of-failed-pods.json", "/api/v1/events", "fieldSelector", "reason=FailedCreatePodSandBox"),
		get("events-of-waiting-pods.json", "/api/v1/events", "fieldSelector", "reason=FailedScheduling"),
	}
	for _, program := range []string{"enipool-operator", "enipool-agent"} {
		pods, err := api.ListPods(ctx, program, "")
		list = append(list, part{program + "-pods.txt", func(context.Context) ([]byte, error) { return podLines(pods), err }})
		worst := slices.SortedStableFunc(slices.Values(pods), func(a, b corev1.Pod) int { return badnessOf(b) - badnessOf(a) })
		for _, p := range worst[:min(len(worst), mostPods)] {
			at := fmt.Sprintf("/api/v1%s/pods/%s/log", space, p.Name)
			for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
				list = append(list, get(fmt.Sprintf("logs/%s-%s.txt", p.Name, c.Name), at, "container", c.Name, "tailLines", logTail))
				if restartsOf(p, c.Name) > 0 {
					list = append(list, get(fmt.Sprintf("logs/%s-%s.before.txt", p.Name, c.Name), at, "container", c.Name, "tailLines", logTail, "previous", "true"))
				}
			}
		}
	}
	return list
}

// badnessOf orders pods: those that are not ready come first, then those that were started again.
func badnessOf(p corev1.Pod) int {
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	if !ready {
		return 2
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.RestartCount > 0 {
			return 1
		}
	}
	return 0
}

func restartsOf(p corev1.Pod, container string) int32 {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.Name == container {
			return c.RestartCount
		}
	}
	return 0
}

func podLines(pods []corev1.Pod) (text []byte) {
	for _, p := range pods {
		text = fmt.Appendf(text, "%s on %s: %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			text = fmt.Appendf(text, ", %s ready %t restarts %d image %s", c.Name, c.Ready, c.RestartCount, c.ImageID)
		}
		text = append(text, '\n')
	}
	return text
}
