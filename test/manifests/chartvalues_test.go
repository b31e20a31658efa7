package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// rendered are the objects of the chart with a file of values.
func rendered(t *testing.T, namespace string, v map[string]any) map[string]object {
	t.Helper()
	text, err := render(t, namespace, newest, v)
	if err != nil {
		t.Fatal(err)
	}
	return objectsOf(t, text)
}

// A part of the nodes comes first: by a label, or by rules of affinity, of which each is joined to what the DaemonSet asks of a node itself.
func TestTheChartRunsAgentsOnAPartOfTheNodes(t *testing.T) {
	v := values(t, "sim.yaml", "nodeSelector.pool=new", "operator.nodeSelector.role=infra",
		"operator.enabled=true", "operator.config.cloud.provider=sim", "operator.config.cloud.cluster=blue")
	var affinity object
	if err := yaml.Unmarshal([]byte(`
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchFields: [{key: metadata.name, operator: In, values: [n1]}]}}]
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions: [{key: zone, operator: In, values: [a]}]
    - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}
`), &affinity); err != nil {
		t.Fatal(err)
	}
	v["affinity"] = affinity
	plain := parse(t, rendered(t, "kube-system", values(t, "sim.yaml"))["DaemonSet enipool-agent"], "spec.template.spec").(object)
	objects := rendered(t, "kube-system", v)
	got := parse(t, objects["DaemonSet enipool-agent"], "spec.template.spec").(object)
	if diff := cmp.Diff(object{"kubernetes.io/os": "linux", "pool": "new"}, got["nodeSelector"]); diff != "" {
		t.Error(diff)
	}
	required := "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	own := parse(t, plain["affinity"].(object), required).([]any)[0].(object)["matchExpressions"].([]any)
	if len(own) < 3 {
		t.Errorf("its own: %v", own)
	}
	terms := parse(t, affinity, required).([]any)
	terms[0].(object)["matchExpressions"] = append(slices.Clone(own), terms[0].(object)["matchExpressions"].([]any)...)
	terms[1].(object)["matchExpressions"] = own
	if diff := cmp.Diff(affinity, got["affinity"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	operator := parse(t, objects["Deployment enipool-operator"], "spec.template.spec.nodeSelector")
	if diff := cmp.Diff(object{"kubernetes.io/os": "linux", "role": "infra"}, operator); diff != "" {
		t.Error(diff)
	}
}

// Another namespace is in every object, what names accounts of the former one too.
func TestTheChartGoesIntoAnyNamespace(t *testing.T) {
	v := operatorValues(t, "topologies.enabled=true", "monitoring.enabled=true", "dashboard.enabled=true", "readiness.enabled=true")
	here, err := render(t, "kube-system", newest, v)
	if err != nil {
		t.Fatal(err)
	}
	there, err := render(t, "pods-network", newest, v)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(here, "namespace: kube-system", "namespace: pods-network"), there); diff != "" {
		t.Error(diff)
	}
	for line := range strings.Lines(there) {
		if strings.Contains(line, "kube-system") && !strings.Contains(line, "kubectl") && !strings.Contains(line, "runbook") {
			t.Errorf("still there: %s", line)
		}
	}
}

func TestTheChartTakesWhatAClusterHas(t *testing.T) {
	objects := rendered(t, "kube-system", operatorValues(t, "image.repository=registry.local/enipool", "image.tag=1a2b3c4", "image.pullPolicy=Always",
		"operator.image.tag=5d6e7f8", "imagePullSecrets[0].name=registry", "serviceAccountAnnotations.role=arn", "operator.serviceAccountAnnotations.role=other",
		"env[0].name=KEY", "env[0].value=x", "operator.env[0].name=KEY", "operator.tolerations[0].key=mine", "operator.tolerations[0].operator=Exists",
		"monitoring.enabled=true", "monitoring.labels.release=prometheus"))
	agent := parse(t, objects["DaemonSet enipool-agent"], "spec.template.spec").(object)
	operator := parse(t, objects["Deployment enipool-operator"], "spec.template.spec").(object)
	for _, tt := range []struct {
		pod   object
		image string
	}{{agent, "registry.local/enipool:1a2b3c4"}, {operator, "ghcr.io/enipool/enipool-operator:5d6e7f8"}} {
		first, _ := tt.pod["initContainers"].([]any)
		for _, c := range slices.Concat(first, tt.pod["containers"].([]any)) {
			if c := c.(object); c["image"] != tt.image || c["imagePullPolicy"] != "Always" {
				t.Errorf("%v %v, want %s", c["image"], c["imagePullPolicy"], tt.image)
			}
		}
		env := tt.pod["containers"].([]any)[0].(object)["env"].([]any)
		if env[len(env)-1].(object)["name"] != "KEY" || len(env) < 2 {
			t.Errorf("%v", env)
		}
		if diff := cmp.Diff([]any{object{"name": "registry"}}, tt.pod["imagePullSecrets"]); diff != "" {
			t.Error(diff)
		}
	}
	if list := operator["tolerations"].([]any); len(list) < 5 || list[len(list)-1].(object)["key"] != "mine" {
		t.Errorf("%v", list)
	}
	for name, want := range map[string]string{"ServiceAccount enipool-agent": "arn", "ServiceAccount enipool-operator": "other"} {
		if got := parse(t, objects[name], "metadata.annotations").(object); got["role"] != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"ServiceMonitor enipool-agent", "PrometheusRule enipool-agent", "ServiceMonitor enipool-operator", "PrometheusRule enipool-operator"} {
		if got := parse(t, objects[name], "metadata.labels").(object); got["release"] != "prometheus" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What values say is what programs read, of numbers and words that YAML has several ways for too.
func TestProgramsReadWhatTheChartWrites(t *testing.T) {
	v := operatorValues(t, "agent.leakAge=2h", "agent.pool.minFree=50%", "agent.maxPods=250", "agent.pool.maxAllocate=4000", "operator.config.share=0.25")
	agent := v["agent"].(map[string]any)
	agent["fastPath"], agent["markMask"], agent["node"] = "off", "0x000000ff", "007"
	objects := rendered(t, "kube-system", v)
	conf, err := agentconf.Parse([]byte(parse(t, objects["ConfigMap enipool-agent"], "data").(object)["agent.yaml"].(string)))
	if err != nil || conf.Node != "007" || conf.LeakAge.Hours() != 2 {
		t.Errorf("%+v, %v", conf, err)
	}
	text := parse(t, objects["ConfigMap enipool-operator-config"], "data").(object)["operator.yaml"].(string)
	if operator, err := operatorconf.Parse([]byte(strings.Replace(text, "change-me", "blue", 1))); err != nil || operator.Cloud.Cluster != "blue" {
		t.Errorf("%+v, %v", operator, err)
	}
}

// Where devices are turned off agents still need what they take, to delete their slices and to have claims of running pods unprepared, without
// which those pods never end. So it goes with the key and not with its value.
func TestWhatDevicesTakeStaysUntilTheKeyGoes(t *testing.T) {
	made := func(kubernetes string, set ...string) map[string]object {
		t.Helper()
		text, err := render(t, "kube-system", kubernetes, values(t, "sim.yaml", set...))
		if err != nil {
			t.Fatalf("%s %v: %v", kubernetes, set, err)
		}
		all := objectsOf(t, text)
		delete(all, "ConfigMap enipool-agent")
		return all
	}
	on, without := made(newest, "agent.kubernetes.dra=true"), made(newest)
	if len(on) != len(without)+5 {
		t.Errorf("%d objects, and %d without", len(on), len(without))
	}
	if diff := cmp.Diff(on, made(newest, "agent.kubernetes.dra=false")); diff != "" {
		t.Errorf("turned off (-on +off):\n%s", diff)
	}
	// A Kubernetes that has no such thing, where there was nothing to turn off.
	if diff := cmp.Diff(made("v1.35.2"), made("v1.35.2", "agent.kubernetes.dra=false")); diff != "" {
		t.Errorf("of an older Kubernetes (-without +off):\n%s", diff)
	}
}
