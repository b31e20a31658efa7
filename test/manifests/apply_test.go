package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
	"github.com/enipool/enipool/test/kube"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// operatorDefinitions are the parts of the Prometheus operator's definitions that ours
// use; another key is an error.
const operatorDefinitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [endpoints, selector]
            properties:
              selector: {type: object, properties: {matchLabels: {type: object, additionalProperties: {type: string}}}}
              endpoints:
                type: array
                items:
                  type: object
                  properties:
                    port: {type: string}
                    interval: {type: string, pattern: '^[0-9]+s$'}
                    relabelings:
                      type: array
                      items:
                        type: object
                        properties:
                          sourceLabels: {type: array, items: {type: string, pattern: '^[a-zA-Z_]+$'}}
                          targetLabel: {type: string}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: PrometheusRule, plural: prometheusrules}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              groups:
                type: array
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    rules:
                      type: array
                      items:
                        type: object
                        required: [expr]
                        properties:
                          alert: {type: string}
                          expr: {type: string}
                          for: {type: string, pattern: '^[0-9]+[smh]$'}
                          labels: {type: object, additionalProperties: {type: string}}
                          annotations: {type: object, additionalProperties: {type: string}}
`

// An overlay without components is for every cluster; what is the Prometheus operator's
// needs its definitions.
func TestTheAPIServerTakesEveryManifest(t *testing.T) {
	c := start(t, kube.Options{})
	try := func(dir string) error {
		// What kubectl knows of a group it does not ask for again, though definitions come
		// one after the other.
		_, err := c.TryKubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "--cache-dir="+t.TempDir(), "--kustomize="+dir)
		return err
	}
	c.must(try(root + "/base"))
	c.must(try(root + "/uninstall"))
	for _, dir := range overlays(t) {
		c.must(try(dir))
		for _, kind := range []string{"ServiceMonitor", "PrometheusRule"} {
			if err := try(everything(t, dir)); err == nil || !strings.Contains(err.Error(), `no matches for kind "`+kind+`"`) {
				t.Errorf("monitoring without the definition of %s: %v", kind, err)
			}
		}
	}
	c.Apply(operatorDefinitions)
	for _, dir := range overlays(t) {
		all := everything(t, dir)
		c.Eventually(dir, func() error { return try(all) })
	}
	c.must(try(operatorWithPages(t)))
	c.tryPod()
}

// tryPod makes a pod as the DaemonSet's controller would: what is wrong with one is
// found only then.
func (c *cluster) tryPod() {
	c.t.Helper()
	p := corev1.Pod{Spec: pod(c.t)}
	p.APIVersion, p.Kind, p.Name, p.Namespace = "v1", "Pod", "agent", "kube-system"
	text, err := yaml.Marshal(p)
	c.must(err)
	c.Eventually("the priority class is there", func() error { _, err := c.TryKubectl("get", "priorityclass", p.Spec.PriorityClassName); return err })
	c.Apply(string(text))
	if got := c.Kubectl("get", "pod", "agent", "--namespace=kube-system", "--output=jsonpath={.spec.priority}"); got != "2000001000" {
		c.t.Errorf("priority %s, want that which is never preempted", got)
	}
}

func TestWhatKustomizeMakesHasOnlyKeysThatKubernetesKnows(t *testing.T) {
	for _, dir := range overlays(t) {
		text := build(t, everything(t, dir))
		objects := decode(t, dir, text)
		if len(objects) < 12 {
			t.Errorf("%s: only %d objects", dir, len(objects))
		}
		for _, line := range []string{":latest", "kind: Secret", "image: ghcr.io/enipool/enipool\n"} {
			if strings.Contains(text, line) {
				t.Errorf("%s: %q in it", dir, line)
			}
		}
	}
}

// The component opens the operator's pages, of which the first line of its file is replaced.
func TestMonitoringOpensThePagesOfTheOperator(t *testing.T) {
	opened := false
	for _, o := range decode(t, "operator", build(t, operatorWithPages(t))) {
		switch o := o.(type) {
		case *corev1.ConfigMap:
			conf, err := operatorconf.Parse([]byte(strings.Replace(o.Data["operator.yaml"], "change-me", "blue", 1)))
			if opened = true; err != nil || conf.Listen != "0.0.0.0:9810" {
				t.Errorf("it listens at %q, %v", conf.Listen, err)
			}
		case *corev1.Service:
			if o.Spec.Ports[0].Port != 9810 {
				t.Errorf("%+v", o.Spec.Ports)
			}
		}
	}
	if !opened {
		t.Error("there is no file of the operator's")
	}
}

// The operator's folder is copied beside itself, as ../README.md says, with the component in its kustomization and a name in its file.
func TestACopyOfTheOperatorIsAnOverlay(t *testing.T) {
	all := t.TempDir()
	if err := os.CopyFS(all, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(all, "my-operator")
	if err := os.CopyFS(mine, os.DirFS(filepath.Join(all, "operator"))); err != nil {
		t.Fatal(err)
	}
	change := func(name string, do func(string) string) {
		if err := os.WriteFile(filepath.Join(mine, name), []byte(do(read(t, filepath.Join(mine, name)))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change("kustomization.yaml", func(text string) string { return text + "components: [../operator-monitoring]\n" })
	change("operator.yaml", func(text string) string {
		return strings.Replace(text, "change-me", "blue", 1) + "observe: true\n"
	})
	for doc := range strings.SplitSeq(build(t, mine), "\n---\n") {
		if !strings.Contains(doc, "\nkind: ConfigMap\n") {
			continue
		}
		text := decode(t, mine, doc)[0].(*corev1.ConfigMap).Data["operator.yaml"]
		if conf, err := operatorconf.Parse([]byte(text)); err != nil || !conf.Observe || conf.Cloud.Cluster != "blue" || conf.Listen != "0.0.0.0:9810" {
			t.Errorf("%+v, %v", conf, err)
		}
		return
	}
	t.Error("there is no file of the operator's")
}

func TestMonitoringOpensThePagesOfTheAgent(t *testing.T) {
	for _, dir := range overlays(t) {
		for _, o := range decode(t, dir, build(t, everything(t, dir))) {
			switch o := o.(type) {
			case *corev1.ConfigMap:
				text, ok := o.Data["agent.yaml"]
				if !ok {
					continue
				}
				conf, err := agentconf.Parse([]byte(text))
				if err != nil || conf.Listen != "0.0.0.0:9809" {
					t.Errorf("%s: listens at %q, %v", dir, conf.Listen, err)
				}
			case *corev1.Service:
				if o.Spec.Ports[0].Port != pod(t).Containers[0].Ports[0].ContainerPort {
					t.Errorf("%+v", o.Spec.Ports)
				}
			}
		}
	}
}
