// Package manifests tests the files of conf/kubernetes: as text, with the types of
// Kubernetes, and on a real API server.
package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// root is where the manifests are.
const root = "../../conf/kubernetes"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// folders returns every folder with a kustomization.
func folders(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == "kustomization.yaml" {
			list = append(list, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(list) < 5 {
		t.Fatalf("found %v, %v", list, err)
	}
	return list
}

// kustomization is what ours are made of; kubectl knows more.
type kustomization struct {
	APIVersion         string            `json:"apiVersion"`
	Kind               string            `json:"kind"`
	Resources          []string          `json:"resources"`
	Components         []string          `json:"components"`
	Labels             []any             `json:"labels"`
	NameSuffix         string            `json:"nameSuffix"`
	Replacements       []any             `json:"replacements"`
	Patches            []patch           `json:"patches"`
	GeneratorOptions   map[string]any    `json:"generatorOptions"`
	ConfigMapGenerator []configGenerator `json:"configMapGenerator"`
	Images             []struct {
		Name   string `json:"name"`
		NewTag string `json:"newTag"`
	} `json:"images"`
}

type patch struct {
	Path   string            `json:"path"`
	Target map[string]string `json:"target"`
}

type configGenerator struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Behavior  string         `json:"behavior"`
	Files     []string       `json:"files"`
	Options   map[string]any `json:"options"`
}

func readKustomization(t *testing.T, dir string) kustomization {
	t.Helper()
	var k kustomization
	if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(dir, "kustomization.yaml"))), &k); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return k
}

func TestEveryFileIsNamedInItsKustomizationAndThere(t *testing.T) {
	for _, dir := range folders(t) {
		k := readKustomization(t, dir)
		named := slices.Clone(k.Resources)
		for _, p := range k.Patches {
			named = append(named, p.Path)
		}
		for _, g := range k.ConfigMapGenerator {
			for _, file := range g.Files { // or KEY=FILE
				named = append(named, file[strings.Index(file, "=")+1:])
			}
		}
		for _, name := range append(named, k.Components...) {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if page := e.Name() == "README.md"; !page && e.Name() != "kustomization.yaml" && !slices.Contains(named, e.Name()) {
				t.Errorf("%s/%s is in no kustomization", dir, e.Name())
			}
		}
	}
}

// monitor is a ServiceMonitor, whose types are not Kubernetes' own.
type monitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		Endpoints []struct {
			Port        string `json:"port"`
			Interval    string `json:"interval"`
			Relabelings []struct {
				SourceLabels []string `json:"sourceLabels"`
				TargetLabel  string   `json:"targetLabel"`
			} `json:"relabelings"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// operatorKind returns what a document of the Prometheus operator or of the node-readiness-controller is read into, nil
// if it is neither's.
func operatorKind(doc string) any {
	switch {
	case strings.Contains(doc, "kind: ServiceMonitor\n"):
		return new(monitor)
	case strings.Contains(doc, "kind: PrometheusRule\n"):
		return new(alerts)
	case strings.Contains(doc, "kind: NodeReadinessRule\n"):
		return new(nodeReadinessRule)
	}
	return nil
}

// decode reads the documents of a manifest with the types of Kubernetes; an unknown
// key, or one that is there twice, is an error.
func decode(t *testing.T, name, text string) []runtime.Object {
	t.Helper()
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(kinds); err != nil {
			t.Fatal(err)
		}
	}
	codecs := serializer.NewCodecFactory(kinds, serializer.EnableStrict)
	var list []runtime.Object
	for _, doc := range strings.Split(text, "\n---\n") {
		if into := operatorKind(doc); into != nil {
			if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		o, _, err := codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list = append(list, o)
	}
	return list
}

// manifests returns the objects of all files that are resources.
func manifests(t *testing.T) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, dir := range folders(t) {
		for _, name := range readKustomization(t, dir).Resources {
			if path := filepath.Join(dir, name); filepath.Ext(name) == ".yaml" {
				all = append(all, decode(t, path, read(t, path))...)
			}
		}
	}
	return all
}

// one returns the only object of a type.
func one[T runtime.Object](t *testing.T) T {
	t.Helper()
	var found []T
	for _, o := range manifests(t) {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T", len(found), *new(T))
	}
	return found[0]
}

// named returns the object of a type with a name.
func named[T interface {
	runtime.Object
	metav1.Object
}](t *testing.T, name string) T {
	t.Helper()
	for _, o := range manifests(t) {
		if o, ok := o.(T); ok && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("no %T %s", *new(T), name)
	panic("unreachable")
}

func TestEveryManifestHasOnlyKeysThatKubernetesKnows(t *testing.T) {
	if all := manifests(t); len(all) < 9 {
		t.Errorf("only %d objects", len(all))
	}
	one[*appsv1.DaemonSet](t)
	for _, name := range []string{"enipool-pod-addresses", "enipool-topology"} {
		named[*admissionv1.MutatingAdmissionPolicy](t, name)
	}
}

// The manifests ask for the release that they belong to, so that what is installed
// does not change by itself.
func TestTheImageHasTheTagOfThisRelease(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(read(t, "../../CHANGELOG.md"))
	images := readKustomization(t, root+"/base").Images
	for _, folder := range []string{"base", "operator"} {
		list := readKustomization(t, filepath.Join(root, folder)).Images
		if len(list) != 1 || heading == nil {
			t.Fatalf("%s: images %v, heading %q", folder, list, heading)
		}
		if want := strings.ToLower(heading[1]); list[0].NewTag != want {
			t.Errorf("%s: the tag is %s, and the first heading of CHANGELOG.md says %s", folder, list[0].NewTag, want)
		}
	}
	for _, c := range containers(t) {
		if c.Image != images[0].Name {
			t.Errorf("container %s has the image %s, which gets no tag", c.Name, c.Image)
		}
	}
}
