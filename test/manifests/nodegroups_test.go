package manifests

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// grouped are values with node groups, by a label.
func grouped(t *testing.T, file, label, groups string, set ...string) map[string]any {
	t.Helper()
	v := values(t, file, set...)
	var all map[string]any
	if err := yaml.Unmarshal([]byte(groups), &all); err != nil {
		t.Fatal(err)
	}
	v["nodeGroups"] = map[string]any{"label": label, "groups": all}
	return v
}

// database is the group of conf/kubernetes/node-groups, in Helm's words.
const database = `
db:
  agent:
    cloud: {subnetTags: {pods: db}, securityGroups: [sg-0123456789abcdef0]}
    pool: {firstENI: 1}
`

func TestTheChartMakesTheNodeGroupsThatKustomizeMakes(t *testing.T) {
	v := grouped(t, "aws.yaml", "eks.amazonaws.com/nodegroup", database)
	same(t, v, root+"/node-groups")
	if _, err := agentconf.Parse([]byte(read(t, root+"/node-groups/agent-db.yaml"))); err != nil {
		t.Error(err)
	}
	// Components are for all agents.
	v = grouped(t, "aws.yaml", "eks.amazonaws.com/nodegroup", database, "agent.fastPath=auto", "agent.kubernetes.dra=true")
	want := build(t, with(t, root+"/node-groups", "fast-path", "dra"))
	sameText(t, v, strings.ReplaceAll(want, "\n    kubernetes:\n", "\n    fastPath: auto\n    kubernetes:\n      dra: true\n"))
}

// What one group has alone only its agents get; what is there once for the cluster is there for it.
func TestAGroupOfItsOwnGetsWhatItsKeysTake(t *testing.T) {
	objects := rendered(t, "kube-system", grouped(t, "sim.yaml", "pool", `{fast: {agent: {fastPath: auto, kubernetes: {dra: true}}}, slow: {agent: {maxPods: 20}}}`, "monitoring.enabled=true"))
	for name, want := range map[string]bool{"enipool-agent": false, "enipool-agent-fast": true, "enipool-agent-slow": false} {
		text, err := yaml.Marshal(objects["DaemonSet "+name])
		if err != nil || objects["DaemonSet "+name] == nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, has := range []string{"PERFMON", "plugins_registry"} {
			if strings.Contains(string(text), has) != want {
				t.Errorf("%s: has %s: want %t", name, has, want)
			}
		}
	}
	if objects["DeviceClass pod-address.enipool.io"] == nil {
		t.Error("there is no DeviceClass")
	}
	for _, file := range []string{"agent.yaml", "agent-fast.yaml", "agent-slow.yaml"} {
		text := parse(t, objects["ConfigMap enipool-agent"], "data").(object)[file].(string)
		if conf, err := agentconf.Parse([]byte(text)); err != nil || conf.Listen != "0.0.0.0:9809" || strings.Contains(text, "maxPods: 20") != (file == "agent-slow.yaml") {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
}

func TestWrongNodeGroupsAreRefusedByName(t *testing.T) {
	for _, tt := range []struct{ label, groups, want string }{
		{"", `{a: {agent: {}}}`, "nodeGroups.label: name the label"},
		{"pool", `{a: {agent: {}}, b: {values: [x, a], agent: {}}}`, "nodeGroups.groups.b: nodes with the value a are of the group a already"},
		{"pool", `{a: {values: [], agent: {}}}`, "at '/nodeGroups/groups/a/values': minItems"},
		{"pool", `{A: {agent: {}}}`, "invalid propertyName 'A'"},
		{"pool", `{a: {values: [x]}}`, "at '/nodeGroups/groups/a': missing property 'agent'"},
		{"pool", `{a: {agent: {pool: {bacth: 1}}}}`, "at '/nodeGroups/groups/a/agent/pool': additional properties 'bacth' not allowed"},
		{"pool", `{a: {agent: {vpcCIDRs: [10.0.0.1/8]}}}`, "at '/nodeGroups/groups/a/agent/vpcCIDRs/0'"},
		{"pool of mine", `{}`, "at '/nodeGroups/label'"},
	} {
		if _, err := render(t, "kube-system", newest, grouped(t, "sim.yaml", tt.label, tt.groups)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v\nwant %q", tt.label, tt.groups, err, tt.want)
		}
	}
}

// Values that `helm upgrade --reuse-values` takes over from an older chart have no such key.
func TestTheChartTakesValuesThatKnowNoNodeGroups(t *testing.T) {
	c := loadChart(t)
	want := rendered(t, "kube-system", values(t, "sim.yaml"))
	delete(c.Values, "nodeGroups")
	version, err := common.ParseKubeVersion(newest)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.ReleaseName, install.Namespace, install.KubeVersion = action.DryRunClient, "enipool", "kube-system", version
	made, err := install.Run(c, values(t, "sim.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, objectsOf(t, made.(*release.Release).Manifest)); diff != "" {
		t.Error(diff)
	}
}

// runsOn tells whether a DaemonSet has a pod on a node with these labels, of its rules for nodes those that ours have.
func runsOn(t interface{ Fatalf(string, ...any) }, d *appsv1.DaemonSet, labels map[string]string) bool {
	terms := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			value, there := labels[e.Key]
			switch e.Operator {
			case corev1.NodeSelectorOpIn:
				return !there || !slices.Contains(e.Values, value)
			case corev1.NodeSelectorOpNotIn:
				return there && slices.Contains(e.Values, value)
			}
			t.Fatalf("an unknown operator: %v", e)
			return true
		})
	})
}

// daemonSets are those of some objects.
func daemonSets(t *testing.T, text string) (all []*appsv1.DaemonSet) {
	t.Helper()
	for _, o := range decode(t, "made", strings.TrimPrefix(text, "---\n")) {
		if d, ok := o.(*appsv1.DaemonSet); ok {
			all = append(all, d)
		}
	}
	return all
}

// Whatever groups there are and whatever labels nodes have.
func TestEachNodeHasTheAgentOfItsGroupAndNoOther(t *testing.T) {
	names := []string{"a", "b", "c-d", "us-west-2a"}
	rapid.Check(t, func(r *rapid.T) {
		label := rapid.SampledFrom([]string{"pool", "topology.kubernetes.io/zone"}).Draw(r, "label")
		groups, groupOf, left := map[string]any{}, map[string]string{}, []string{"v1", "v2", "v3", "v4", "v5"}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID).Draw(r, "groups") {
			group := map[string]any{"agent": map[string]any{}}
			n := rapid.IntRange(0, min(2, len(left))).Draw(r, "values")
			for _, value := range left[:n] {
				groupOf[value] = name
			}
			if n == 0 {
				groupOf[name] = name
			} else {
				group["values"] = slices.Collect(func(yield func(any) bool) {
					for _, value := range left[:n] {
						yield(value)
					}
				})
			}
			groups[name], left = group, left[n:]
		}
		v := values(t, "sim.yaml")
		v["nodeGroups"] = map[string]any{"label": label, "groups": groups}
		text, err := render(t, "kube-system", newest, v)
		if err != nil {
			r.Fatal(err)
		}
		sets := daemonSets(t, text)
		for _, value := range append([]string{"", "v1", "v2", "v3", "v4", "v5"}, names...) {
			labels := map[string]string{"kubernetes.io/arch": "amd64", label: value}
			if value == "" {
				delete(labels, label)
			}
			want := "enipool-agent"
			if of := groupOf[value]; of != "" {
				want += "-" + of
			}
			var got []string
			for _, d := range sets {
				if runsOn(r, d, labels) {
					got = append(got, d.Name)
				}
			}
			if !slices.Equal(got, []string{want}) {
				r.Fatalf("%s=%s of %v: agents of %v, want %s", label, value, groupOf, got, want)
			}
		}
	})
}

// agentsOf waits until each node has the agent that it shall have and no other, as the cluster's own controller sees it.
func (c *cluster) agentsOf(want map[string]string) {
	c.t.Helper()
	c.Eventually("the agents of all nodes", func() error {
		pods, err := c.admin.CoreV1().Pods("kube-system").List(context.Background(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=enipool-agent"})
		if err != nil {
			return err
		}
		got := map[string]string{}
		for _, p := range pods.Items {
			for _, node := range namesIn(p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]) {
				if p.DeletionTimestamp == nil {
					got[node] += " " + p.OwnerReferences[0].Name
				}
			}
		}
		for node, name := range got {
			got[node] = strings.TrimSpace(name)
		}
		if !maps.Equal(want, got) {
			return fmt.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
		}
		return nil
	})
}

// uids are those of the pods of a DaemonSet.
func (h helmed) uids(group string) string {
	return h.Kubectl("get", "pods", "--namespace="+h.namespace, "--selector=enipool.io/node-group="+group, "--output=jsonpath={.items[*].metadata.uid}")
}

// Groups come and go by upgrades, and the agents of others run on.
func TestNodeGroupsComeAndGo(t *testing.T) {
	h := startHelmed(t, "kube-system")
	const zone = "topology.kubernetes.io/zone"
	for name, value := range map[string]string{"n-a": "zone-a", "n-b": "zone-b", "n-c": "zone-c", "n-none": ""} {
		h.addNode(name, nil)
		if value != "" {
			h.Kubectl("label", "node", name, zone+"="+value)
		}
	}
	h.addNode("virtual", nil)
	h.Kubectl("label", "node", "virtual", "type=virtual-kubelet", zone+"=zone-a")
	const others = "enipool-agent"
	h.must(h.install(loadChart(t), grouped(t, "sim.yaml", zone, `{zone-a: {agent: {maxPods: 11}}}`)))
	h.agentsOf(map[string]string{"n-a": others + "-zone-a", "n-b": others, "n-c": others, "n-none": others})
	ran := h.uids("zone-a")

	h.must(h.upgrade(grouped(t, "sim.yaml", zone, `{zone-a: {agent: {maxPods: 12}}, rest: {values: [zone-b, zone-c], agent: {maxPods: 13}}}`)))
	h.agentsOf(map[string]string{"n-a": others + "-zone-a", "n-b": others + "-rest", "n-c": others + "-rest", "n-none": others})
	h.is("1", "daemonset/enipool-agent-zone-a", generation)
	h.has("maxPods: 12", "configmap/enipool-agent", `{.data.agent-zone-a\.yaml}`, true)
	h.has("maxPods: 13", "configmap/enipool-agent", `{.data.agent-rest\.yaml}`, true)
	if got := h.uids("zone-a"); got != ran || ran == "" {
		t.Errorf("agents of zone-a: %s, and before %s", got, ran)
	}

	// A node that gets another value gets its agent.
	h.Kubectl("label", "--overwrite", "node", "n-c", zone+"=zone-a")
	h.agentsOf(map[string]string{"n-a": others + "-zone-a", "n-b": others + "-rest", "n-c": others + "-zone-a", "n-none": others})

	h.must(h.upgrade(grouped(t, "sim.yaml", zone, `{rest: {values: [zone-b, zone-c], agent: {maxPods: 13}}}`)))
	h.agentsOf(map[string]string{"n-a": others, "n-b": others + "-rest", "n-c": others, "n-none": others})
	h.is("1", "daemonset/enipool-agent-rest", generation)

	// Each takes enipool off its own nodes.
	v := grouped(t, "sim.yaml", zone, `{rest: {values: [zone-b, zone-c], agent: {maxPods: 13}}}`, "uninstall=true")
	h.must(h.upgrade(v))
	for _, name := range []string{others, others + "-rest"} {
		h.is("uninstall --root=/host", "daemonset/"+name, "{.spec.template.spec.initContainers[0].args[0]} {.spec.template.spec.initContainers[0].args[1]}")
	}
	h.agentsOf(map[string]string{"n-a": others, "n-b": others + "-rest", "n-c": others, "n-none": others})
}

// By kustomize, with the way to uninstall that its page tells.
func TestTheOverlayOfNodeGroupsGivesEachNodeOneAgent(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	for name, label := range map[string]string{"n-db": "eks.amazonaws.com/nodegroup=db", "n-web": "eks.amazonaws.com/nodegroup=web", "n-none": ""} {
		c.addNode(name, nil)
		if label != "" {
			c.Kubectl("label", "node", name, label)
		}
	}
	c.install(root + "/node-groups")
	c.agentsOf(map[string]string{"n-db": "enipool-agent-db", "n-web": "enipool-agent", "n-none": "enipool-agent"})
	c.Kubectl("--namespace", "kube-system", "delete", "daemonset", "-l", "enipool.io/node-group", "--cascade=foreground")
	c.install(root + "/uninstall")
	c.agentsOf(map[string]string{"n-db": "enipool-agent", "n-web": "enipool-agent", "n-none": "enipool-agent"})
}
