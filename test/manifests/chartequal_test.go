package manifests

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"
)

// object is one that was made, with all that it has.
type object = map[string]any

// objectsOf reads documents into objects by kind and name; one may be there once.
func objectsOf(t *testing.T, text string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if o == nil {
			continue
		}
		meta := o["metadata"].(object)
		name := fmt.Sprintf("%s %s", o["kind"], strings.TrimSuffix(meta["name"].(string), hash(meta["name"].(string))))
		if all[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		all[name] = o
	}
	return all
}

// hash is what kustomize puts behind the name of the operator's ConfigMap, "" for other names.
func hash(name string) string {
	rest, ok := strings.CutPrefix(name, "enipool-operator-config")
	if !ok {
		return ""
	}
	return rest
}

// alike takes out of what kustomize has made all in which the chart differs on purpose, and of the chart's that too.
func alike(t *testing.T, kustomize, chart map[string]object) {
	t.Helper()
	for _, o := range kustomize {
		meta := o["metadata"].(object)
		// Components know nothing of the label that their overlay's base gives its objects.
		labels, _ := meta["labels"].(object)
		meta["labels"] = object{"app.kubernetes.io/part-of": "enipool"}
		maps.Copy(meta["labels"].(object), labels)
	}
	for name, o := range chart {
		meta, other := o["metadata"].(object), kustomize[name]
		annotations, _ := meta["annotations"].(object)
		// With the kinds stays what agents may do with them.
		kept := o["kind"] == "CustomResourceDefinition" || strings.HasSuffix(name, "-nodenetworks") || strings.HasSuffix(name, "-nodenetwork")
		if kept && annotations["helm.sh/resource-policy"] == "keep" {
			if delete(annotations, "helm.sh/resource-policy"); len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
		switch {
		case other == nil:
		case name == "ConfigMap enipool-operator-config": // the chart's has a name that stays, so nothing prunes it
			other["metadata"].(object)["name"] = "enipool-operator-config"
			delete(other["metadata"].(object), "annotations")
		case name == "Deployment enipool-operator": // by that name operators start again; by an annotation here
			parse(t, other, "spec.template.spec.volumes").([]any)[0].(object)["configMap"].(object)["name"] = "enipool-operator-config"
			annotations := parse(t, o, "spec.template.metadata").(object)["annotations"].(object)
			if sum, _ := annotations["enipool.io/config"].(string); len(sum) == 64 && len(annotations) == 1 {
				delete(parse(t, o, "spec.template.metadata").(object), "annotations")
			}
		}
		// Configuration is compared by what it says: Helm's values have no comments.
		for _, object := range []object{o, other} {
			data, _ := object["data"].(map[string]any)
			for file := range data {
				if text, ok := data[file].(string); ok && filepath.Ext(file) == ".yaml" {
					var says any
					if err := yaml.Unmarshal([]byte(text), &says); err != nil {
						t.Fatal(err)
					}
					data[file] = says
				}
			}
		}
	}
}

// parse follows a path of keys.
func parse(t *testing.T, o object, path string) any {
	t.Helper()
	var at any = o
	for key := range strings.SplitSeq(path, ".") {
		m, ok := at.(object)
		if !ok || m[key] == nil {
			t.Fatalf("there is no %s", path)
		}
		at = m[key]
	}
	return at
}

// same compares what kustomizations and the chart make, field by field.
func same(t *testing.T, v map[string]any, dirs ...string) {
	t.Helper()
	sameText(t, v, builds(t, dirs...))
}

// builds is what kustomize makes of several folders.
func builds(t *testing.T, dirs ...string) string {
	t.Helper()
	text := ""
	for _, dir := range dirs {
		text += build(t, dir) + "\n---\n"
	}
	return text
}

func sameText(t *testing.T, v map[string]any, want string) {
	t.Helper()
	text, err := render(t, "kube-system", newest, v)
	if err != nil {
		t.Fatal(err)
	}
	kustomize, chart := objectsOf(t, want), objectsOf(t, text)
	alike(t, kustomize, chart)
	// Of folded lines that are indented kustomize makes one line break more; CEL knows no difference.
	lines := cmpopts.AcyclicTransformer("lines", func(text string) string { return strings.ReplaceAll(text, "\n\n", "\n") })
	if diff := cmp.Diff(kustomize, chart, cmp.FilterPath(isExpression, lines)); diff != "" {
		t.Errorf("(-kustomize +chart):\n%s", diff)
	}
}

// isExpression is true of the text of a policy.
func isExpression(p cmp.Path) bool {
	for _, step := range p {
		if key, ok := step.(cmp.MapIndex); ok && (key.Key().String() == "expression" || key.Key().String() == "messageExpression") {
			return true
		}
	}
	return false
}

// with is an overlay with components, beside those that it has.
func with(t *testing.T, overlay string, components ...string) string {
	t.Helper()
	dir, text := t.TempDir(), ""
	for _, name := range components {
		if !slices.Contains(readKustomization(t, overlay).Components, "../../"+name) {
			text += "- " + relative(t, dir, filepath.Join(root, name)) + "\n"
		}
	}
	if text == "" {
		return overlay
	}
	writeOverlay(t, dir, overlay, text)
	return dir
}

// What Helm installs is what kustomize does, of each cloud and with each component.
func TestTheChartMakesWhatKustomizeMakes(t *testing.T) {
	for _, overlay := range overlays(t) {
		has := readKustomization(t, overlay).Components
		for _, tt := range []struct {
			component string
			set       []string
		}{
			{"", nil},
			{"scheduling", []string{"scheduling.enabled=true"}},
			{"readiness", []string{"readiness.enabled=true"}},
			{"monitoring", []string{"monitoring.enabled=true"}},
			{"dashboard", []string{"dashboard.enabled=true"}},
			{"fast-path", []string{"agent.fastPath=auto"}},
			{"dra", []string{"agent.kubernetes.dra=true"}},
		} {
			t.Run(filepath.Base(overlay)+" "+tt.component, func(t *testing.T) {
				v := values(t, filepath.Base(overlay)+".yaml", tt.set...)
				if slices.Contains(has, "../../scheduling") { // as in the tests' own overlay, all of whose nodes have enipool
					v["scheduling"] = map[string]any{"enabled": true}
				}
				var components []string
				if tt.component != "" {
					components = append(components, tt.component)
				}
				want := build(t, with(t, overlay, components...))
				if tt.component == "fast-path" { // the component gives the rights, and who applies it writes the key
					want = strings.Replace(want, "\n    kubernetes:\n", "\n    fastPath: auto\n    kubernetes:\n", 1)
				}
				if tt.component == "dra" {
					want = strings.Replace(want, "\n    kubernetes:\n", "\n    kubernetes:\n      dra: true\n", 1)
				}
				sameText(t, v, want)
			})
		}
	}
}

// operatorValues are those of conf/kubernetes/operator: its operator.yaml, as values.
func operatorValues(t *testing.T, set ...string) map[string]any {
	t.Helper()
	v := values(t, "aws.yaml", append([]string{"operator.enabled=true"}, set...)...)
	var config map[string]any
	if err := yaml.Unmarshal([]byte(read(t, root+"/operator/operator.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	v["operator"].(map[string]any)["config"] = config
	return v
}

func TestTheChartMakesTheOperatorThatKustomizeMakes(t *testing.T) {
	agents := root + "/overlays/aws"
	same(t, operatorValues(t), agents, root+"/crds", root+"/operator")
	same(t, operatorValues(t, "monitoring.enabled=true"), with(t, agents, "monitoring"), root+"/crds", operatorWithPages(t))
}

func TestTheChartMakesTheTopologiesThatKustomizeMakes(t *testing.T) {
	v := operatorValues(t, "topologies.enabled=true")
	want := build(t, root+"/operator") // with the key that the page says, which the chart sets by itself
	want = strings.Replace(want, "    cloud:\n", "    topologies: true\n    cloud:\n", 1)
	sameText(t, v, want+"\n---\n"+builds(t, root+"/overlays/aws", root+"/crds", root+"/topologies"))
}

// What takes enipool off the nodes changes the DaemonSet as kustomize does, and keeps what else there is: the agents' file too.
func TestTheChartUninstallsAsKustomizeDoes(t *testing.T) {
	for _, fastPath := range []string{"off", "auto"} {
		text, err := render(t, "kube-system", newest, values(t, "sim.yaml", "uninstall=true", "agent.fastPath="+fastPath))
		if err != nil {
			t.Fatal(err)
		}
		installed, err := render(t, "kube-system", newest, values(t, "sim.yaml", "agent.fastPath="+fastPath))
		if err != nil {
			t.Fatal(err)
		}
		want, got := objectsOf(t, installed), objectsOf(t, text)
		want["DaemonSet enipool-agent"] = objectsOf(t, build(t, root+"/uninstall"))["DaemonSet enipool-agent"]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
