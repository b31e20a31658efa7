package manifests

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/enipool/enipool/test/kube"
)

// A tool takes over what another has applied, as where people change from kubectl to Argo CD or Flux, or from one of these to the other.
// Neither says anything else than the other, so there is no conflict, and a comparison shows nothing: not what the API server added either.
func TestAnotherFieldManagerAppliesWithoutConflict(t *testing.T) {
	c := start(t, kube.Options{})
	c.Apply(operatorDefinitions)
	for _, dir := range []string{root + "/crds", root + "/topologies", operatorWithPages(t), everything(t, root+"/overlays/aws")} {
		text := filepath.Join(t.TempDir(), "all.yaml")
		c.must(os.WriteFile(text, []byte(build(t, dir)), 0o600))
		apply := func(manager string) error {
			_, err := c.TryKubectl("apply", "--server-side", "--field-manager="+manager, "--filename="+text)
			return err
		}
		// Kinds are served a moment after they are there.
		c.Eventually(dir, func() error { return apply("first") })
		if err := errors.Join(apply("second"), apply("first")); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		for _, flags := range [][]string{{"--server-side", "--field-manager=second"}, {}} {
			if shown, err := c.TryKubectl(append([]string{"diff", "--filename=" + text}, flags...)...); err != nil {
				t.Errorf("%s: what was applied differs from what is there: %v\n%s", dir, err, shown)
			}
		}
	}
}

// Where another tool applied the agents on the server's side, that which takes them off is applied to a DaemonSet that was deleted first, as the page says:
// the agent's probes, which the tool owns, would end the containers that show that a node is done.
func TestTheAgentsOfAnotherFieldManagerAreTakenOff(t *testing.T) {
	c := start(t, kube.Options{})
	page := read(t, filepath.Join(root, "README.md"))
	remove := []string{"--namespace", "kube-system", "delete", "daemonset", "enipool-agent"}
	if !strings.Contains(page, "`kubectl "+strings.Join(remove, " ")+"`") {
		t.Error("the page does not say so")
	}
	c.Kubectl("apply", "--server-side", "--field-manager=tool", "--kustomize="+root+"/overlays/sim")
	c.Kubectl(remove...)
	c.Kubectl("apply", "--kustomize="+root+"/uninstall")
	if left := c.Kubectl("get", "daemonset", "enipool-agent", "--namespace=kube-system", "--output=jsonpath={.spec.template.spec.containers[*].livenessProbe}{.spec.template.spec.containers[*].readinessProbe}"); left != "" {
		t.Errorf("probes are left: %s", left)
	}
}

// The kinds stay where a tool prunes: they would take their objects with them.
func TestTheKindsAreKeptByToolsThatPrune(t *testing.T) {
	kinds := 0
	for _, dir := range []string{"crds", "topologies"} {
		for _, o := range decode(t, dir, build(t, root+"/"+dir)) {
			if kind, is := o.(*apiextensionsv1.CustomResourceDefinition); is {
				kinds++
				if kind.Annotations["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" || kind.Annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
					t.Errorf("%s: %v", kind.Name, kind.Annotations)
				}
			}
		}
	}
	if kinds != 4 {
		t.Errorf("%d kinds", kinds)
	}
}

// Who has kubectl explain alone can write a topology.
func TestWhatPeopleWriteOfATopologyIsExplained(t *testing.T) {
	for _, o := range decode(t, "topologies", build(t, root+"/topologies")) {
		kind, is := o.(*apiextensionsv1.CustomResourceDefinition)
		if !is || kind.Spec.Names.Kind != "PodSubnetTopology" {
			continue
		}
		spec := kind.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for where, schema := range map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "spec.strategy": spec.Properties["strategy"], "spec.subnets": *spec.Properties["subnets"].Items.Schema} {
			if len(schema.Properties) < 2 {
				t.Errorf("%s has %d fields", where, len(schema.Properties))
			}
			for name, field := range schema.Properties {
				if field.Description == "" {
					t.Errorf("%s.%s says nothing", where, name)
				}
			}
		}
	}
}
