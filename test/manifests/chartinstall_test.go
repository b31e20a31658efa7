package manifests

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// helmed is a cluster that Helm installs the chart on, as its program does.
type helmed struct {
	*cluster
	namespace string
	config    *action.Configuration
}

func startHelmed(t *testing.T, namespace string) helmed {
	t.Helper()
	c := start(t, kube.Options{ControllerManager: true})
	flags := genericclioptions.NewConfigFlags(true)
	file := c.Kubeconfig("admin")
	flags.KubeConfig, flags.Namespace = &file, &namespace
	config := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	c.must(config.Init(flags, namespace, "secret"))
	return helmed{c, namespace, config}
}

// No node runs here, so nothing gets ready: who waits for that is no part of these tests.
const wait = helmkube.HookOnlyStrategy

func (h helmed) install(made *chart.Chart, v map[string]any) error {
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace, i.WaitStrategy = "enipool", h.namespace, wait
	_, err := i.Run(made, v)
	return err
}

func (h helmed) upgrade(v map[string]any) error {
	u := action.NewUpgrade(h.config)
	u.Namespace, u.WaitStrategy, u.ResetValues = h.namespace, wait, true
	_, err := u.Run("enipool", loadChart(h.t), v)
	return err
}

func (h helmed) rollback(version int) error {
	r := action.NewRollback(h.config)
	r.Version, r.WaitStrategy = version, wait
	return r.Run("enipool")
}

func (h helmed) uninstall() error {
	u := action.NewUninstall(h.config)
	u.WaitStrategy = wait
	_, err := u.Run("enipool")
	return err
}

// is asks for a field of an object and compares.
func (h helmed) is(want, object, field string) {
	h.t.Helper()
	if got := h.Kubectl("get", object, "--namespace="+h.namespace, "--output=jsonpath="+field); got != want {
		h.t.Errorf("%s %s is %q, want %q", object, field, got, want)
	}
}

// has tells whether text is in a field.
func (h helmed) has(text, object, field string, want bool) {
	h.t.Helper()
	if got := h.Kubectl("get", object, "--namespace="+h.namespace, "--output=jsonpath="+field); strings.Contains(got, text) != want {
		h.t.Errorf("%s %s: has %q: want %t\n%s", object, field, text, want, got)
	}
}

const (
	agentFile    = `{.data.agent\.yaml}`
	operatorFile = `{.data.operator\.yaml}`
	generation   = "{.metadata.generation}"
)

// everyPart are values by which all that the chart has is installed.
func everyPart(t *testing.T, set ...string) map[string]any {
	t.Helper()
	return operatorValues(t, append([]string{"topologies.enabled=true", "monitoring.enabled=true", "dashboard.enabled=true", "agent.fastPath=auto"}, set...)...)
}

// A change restarts who does not read it while running, and nobody else; an upgrade changes the kinds too, and a rollback is the way back.
func TestHelmUpgradesAndRollsBack(t *testing.T) {
	h := startHelmed(t, "kube-system")
	h.Apply(operatorDefinitions)
	older := loadChart(t)
	for _, f := range older.Files {
		if f.Name == "files/crds/crds.yaml" {
			text := strings.Replace(string(f.Data), "    - {name: Zone, type: string, jsonPath: .status.zone}\n", "", 1)
			if text == string(f.Data) {
				t.Fatal("the kind has no such column")
			}
			f.Data = []byte(text)
		}
	}
	columns := "{.spec.versions[0].additionalPrinterColumns[*].name}"
	h.Eventually("the kinds of Prometheus are there", func() error { _, err := h.TryKubectl("get", "servicemonitors,prometheusrules"); return err })
	h.must(h.install(older, everyPart(t)))
	h.has("Zone", "crd/nodenetworks.enipool.io", columns, false)

	h.must(h.upgrade(everyPart(t, "agent.maxPods=77"))) // 2
	h.has("Zone", "crd/nodenetworks.enipool.io", columns, true)
	h.has("maxPods: 77", "configmap/enipool-agent", agentFile, true)
	h.is("1", "daemonset/enipool-agent", generation)
	h.is("1", "deployment/enipool-operator", generation)

	v := everyPart(t)
	v["operator"].(map[string]any)["config"].(map[string]any)["observe"] = false
	h.must(h.upgrade(v)) // 3
	h.has("observe: false", "configmap/enipool-operator-config", operatorFile, true)
	h.is("1", "daemonset/enipool-agent", generation)
	h.is("2", "deployment/enipool-operator", generation)

	if err := h.upgrade(everyPart(t, "agent.pool.bacth=1")); err == nil || !strings.Contains(err.Error(), "'bacth' not allowed") {
		t.Errorf("a wrong key: %v", err)
	}
	h.must(h.upgrade(everyPart(t, "image.tag=next"))) // 4
	h.is("2", "daemonset/enipool-agent", generation)
	h.is("ghcr.io/enipool/enipool:next", "daemonset/enipool-agent", "{.spec.template.spec.containers[0].image}")

	h.must(h.rollback(2))
	h.is("ghcr.io/enipool/enipool:unreleased", "daemonset/enipool-agent", "{.spec.template.spec.containers[0].image}")
	h.has("maxPods: 77", "configmap/enipool-agent", agentFile, true)
	h.has("observe", "configmap/enipool-operator-config", operatorFile, false)
}

// Uninstalling leaves the kinds with their objects alone, and another installation takes them over.
func TestHelmUninstalls(t *testing.T) {
	h := startHelmed(t, "pods-network")
	h.Apply(operatorDefinitions)
	h.Kubectl("create", "namespace", h.namespace)
	h.Eventually("the kinds of Prometheus are there", func() error { _, err := h.TryKubectl("get", "servicemonitors,prometheusrules"); return err })
	before := h.all()
	h.must(h.install(loadChart(t), everyPart(t)))
	if made := h.all(); len(made) < len(before)+20 {
		t.Errorf("there are %d objects, and were %d", len(made), len(before))
	}
	h.Kubectl("wait", "--for=condition=Established", "crd/podsubnettopologies.enipool.io")
	h.Eventually("a topology", func() error {
		_, err := h.TryKubectl("create", "--validate=false", "--filename="+writeFile(t, `{"apiVersion": "enipool.io/v1alpha1", "kind": "PodSubnetTopology", "metadata": {"name": "db"},
			"spec": {"podSelector": {"matchLabels": {"app": "db"}}, "subnets": [{"id": "subnet-0a1"}], "strategy": {"type": "Elastic"}}}`))
		return err
	})

	h.must(h.upgrade(everyPart(t, "uninstall=true")))
	agent := "{.spec.template.spec.containers[0].livenessProbe}{.spec.template.spec.containers[0].readinessProbe}{.spec.template.spec.containers[0].args}"
	h.is("", "daemonset/enipool-agent", agent)
	h.is("uninstall --root=/host", "daemonset/enipool-agent", "{.spec.template.spec.initContainers[0].args[0]} {.spec.template.spec.initContainers[0].args[1]}")
	h.must(h.uninstall())
	var kinds []string // and what agents may do with them
	for _, name := range []string{"addressclaims", "nodenetworks", "podsubnettopologies", "subnets"} {
		kinds = append(kinds, "customresourcedefinition.apiextensions.k8s.io/"+name+".enipool.io")
	}
	kinds = append(kinds, "clusterrole.rbac.authorization.k8s.io/enipool-agent-nodenetworks", "clusterrolebinding.rbac.authorization.k8s.io/enipool-agent-nodenetworks",
		"validatingadmissionpolicy.admissionregistration.k8s.io/enipool-own-nodenetwork", "validatingadmissionpolicybinding.admissionregistration.k8s.io/enipool-own-nodenetwork")
	slices.Sort(kinds)
	h.Eventually("all is gone but the kinds", func() error {
		if left := slices.DeleteFunc(h.all(), func(o string) bool { return slices.Contains(before, o) }); !slices.Equal(left, kinds) {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	})
	h.is("db", "podsubnettopology/db", "{.metadata.name}")
	h.must(h.install(loadChart(t), everyPart(t)))
	h.is("db", "podsubnettopology/db", "{.metadata.name}")
	h.must(h.uninstall())
	h.Kubectl(strings.Fields(lastWord(t))...)
	h.Eventually("all is gone", func() error {
		if left := slices.DeleteFunc(h.all(), func(o string) bool { return slices.Contains(before, o) }); len(left) > 0 {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	})
}

// lastWord is what the page says to delete in the end, without kubectl.
func lastWord(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, root+"/README.md"), "helm uninstall enipool --namespace kube-system\n    kubectl ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found {
		t.Fatal("the page does not say how the kinds are deleted")
	}
	return line
}

// Who has installed by kustomize goes on with Helm, without a new start of any agent.
func TestHelmTakesOverWhatKustomizeHasInstalled(t *testing.T) {
	h := startHelmed(t, "kube-system")
	h.Kubectl("apply", "--kustomize="+root+"/overlays/sim")
	v := values(t, "sim.yaml", "scheduling.enabled=true")
	if err := h.install(loadChart(t), v); err == nil || !strings.Contains(err.Error(), "cannot be imported into the current release") {
		t.Errorf("without being told to: %v", err)
	}
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.TakeOwnership, i.ForceConflicts = "enipool", h.namespace, wait, true, true
	_, err := i.Run(loadChart(t), v)
	h.must(err)
	h.is("1", "daemonset/enipool-agent", generation)
	h.is("Helm", "daemonset/enipool-agent", `{.metadata.labels.app\.kubernetes\.io/managed-by}`)
	h.must(h.uninstall())
	if got, err := h.TryKubectl("get", "daemonset", "enipool-agent", "--namespace=kube-system", "--ignore-not-found", "--output=name"); err != nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}

// all are the objects of those kinds that the chart makes, by kind and name.
func (h helmed) all() []string {
	h.t.Helper()
	kinds := map[string]bool{}
	text, err := render(h.t, h.namespace, newest, everyPart(h.t))
	h.must(err)
	for name := range objectsOf(h.t, text) {
		kinds[strings.ToLower(strings.Fields(name)[0])] = true
	}
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		got, err := h.TryKubectl("get", kind, "--namespace="+h.namespace, "--output=name")
		h.must(err)
		list = append(list, strings.Fields(got)...)
	}
	return slices.Sorted(slices.Values(list))
}

// writeFile returns the path of a file with that text.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/object.json"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
