package cce

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/yaml"
	strictyaml "sigs.k8s.io/yaml"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
	"github.com/enipool/enipool/test/kube"
)

func TestMain(m *testing.M) { nettest.Main(m) }

var write = flag.Bool("write", false, "write the files that the output is compared with")

// run runs a command line, and returns its exit code and what it says.
func run(stdin string, args ...string) (code int, out, errs string) {
	root := &cobra.Command{Use: "enipoolctl"}
	root.AddCommand(Command())
	root.SetIn(strings.NewReader(stdin))
	var stdout, stderr bytes.Buffer
	code = cli.Run(context.Background(), root, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func inputs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	return files
}

// What is printed for each input is the file of its name, with what stands on stderr and the exit code behind it.
func TestObjectsBecomeTopologiesAndNothingIsLostWithoutAWord(t *testing.T) {
	for _, file := range inputs(t) {
		code, out, errs := run("", "import", "psts", "-f", file)
		got := fmt.Sprintf("%s\n=== stderr, exit %d\n%s", out, code, errs)
		golden := strings.TrimSuffix(file, ".yaml") + ".want"
		if *write {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got): go test -write writes it\n%s", file, diff)
		}
	}
}

// documents returns the YAML documents of a text that are objects.
func documents(t *testing.T, text string) (all []string) {
	t.Helper()
	for next := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		one, err := next.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(one, []byte("\nkind: ")) {
			all = append(all, string(one))
		}
	}
}

// Whatever is printed has only keys that the kinds have, is read without an error, and has what the comments say.
func TestWhatIsPrintedIsReadAsOurObjects(t *testing.T) {
	topologies, subnets := 0, 0
	for _, file := range inputs(t) {
		_, out, _ := run("", "import", "psts", "-f", file)
		for _, one := range documents(t, out) {
			if strings.Contains(one, "\nkind: Subnet\n") {
				var s crd.Subnet
				if err := strictyaml.UnmarshalStrict([]byte(one), &s); err != nil || s.Spec.Use != "Exclusive" || s.Name == "" {
					t.Errorf("%s: %v\n%s", file, err, one)
				}
				subnets++
				continue
			}
			var is crd.PodSubnetTopology
			if err := strictyaml.UnmarshalStrict([]byte(one), &is); err != nil {
				t.Errorf("%s: %v\n%s", file, err, one)
			}
			if read, err := is.Read(); err != nil || len(read.Sources) == 0 || len(is.Name) > 63 || is.APIVersion != "enipool.io/v1alpha1" {
				t.Errorf("%s: %+v, %v\n%s", file, read, err, one)
			}
			topologies++
		}
	}
	if topologies < 10 || subnets < 4 {
		t.Errorf("only %d topologies and %d subnets", topologies, subnets)
	}
}

// The API server takes all that is printed, with every rule of the schema.
func TestARealAPIServerTakesWhatIsPrinted(t *testing.T) {
	nettest.Need(t)
	kube.Need(t)
	c := kube.Start(t, kube.Options{})
	c.Kubectl("apply", "--server-side", "--kustomize=../../../conf/kubernetes/crds")
	c.Kubectl("apply", "--server-side", "--filename=../../../conf/kubernetes/topologies/crds.yaml")
	c.Kubectl("wait", "--for=condition=Established", "crd/subnets.enipool.io", "crd/podsubnettopologies.enipool.io")
	for _, file := range inputs(t) {
		_, out, _ := run("", "import", "psts", "-f", file)
		c.Apply(out)
	}
	if list := c.Kubectl("get", "podsubnettopologies"); !strings.Contains(list, "team-red") || !strings.Contains(list, "db-reuse") {
		t.Errorf("there are\n%s", list)
	}
}

// A cluster is asked for both kinds and for its subnets. One that has none of the kinds is told apart from one that has no objects.
func TestAClusterIsAsked(t *testing.T) {
	s := clustertest.Start(t)
	asked := []string{"import", "psts", "--kubeconfig", s.Kubeconfig}
	if code, _, errs := run("", asked...); code != 2 || !strings.Contains(errs, "the cluster has no kinds of cce.baidubce.com") {
		t.Errorf("exit %d, %s", code, errs)
	}
	list := func(resource, kind, version string, items ...any) {
		s.Put("/apis/cce.baidubce.com/"+version+"/"+resource, map[string]any{"kind": kind + "List", "apiVersion": "cce.baidubce.com/" + version, "metadata": map[string]any{}, "items": items})
	}
	list("podsubnettopologyspreads", ofNamespace, "v2")
	if code, _, errs := run("", asked...); code != 2 || !strings.Contains(errs, "there is nothing to import") {
		t.Errorf("exit %d, %s", code, errs)
	}
	of := func(namespace, name string, spec map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}
	}
	list("podsubnettopologyspreads", ofNamespace, "v2", of("db", "a", map[string]any{"subnets": map[string]any{"sbn-a": []any{}}, "maxSkew": 0}))
	list("clusterpodsubnettopologyspreads", ofCluster, "v2alpha1", of("", "b", map[string]any{"subnets": map[string]any{"sbn-b": []any{}}, "maxSkew": 0}))
	list("subnets", subnetKind, "v1", of("", "sbn-b", map[string]any{"exclusive": true}), of("", "sbn-a", map[string]any{}))
	code, out, errs := run("", asked...)
	for _, want := range []string{"name: db-a\n", "name: b\n", "kind: Subnet\nmetadata:\n  name: sbn-b\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is not in\n%s%s", code, want, out, errs)
		}
	}
	if !strings.Contains(errs, "2 topologies, 1 Exclusive subnets, 0 left out") {
		t.Error(errs)
	}
}

// What is no YAML, or no file, is said; stdin can have what a file has.
func TestWrongFilesSayWhatIsWrong(t *testing.T) {
	for stdin, want := range map[string]string{"a: [": "read --file -: ", "": "there is nothing to import"} {
		if code, _, errs := run(stdin, "import", "psts", "-f", "-"); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, %s", stdin, code, errs)
		}
	}
	if code, _, errs := run("", "import", "psts", "-f", "testdata/none"); code != 2 || !strings.Contains(errs, "read --file: open testdata/none") {
		t.Errorf("exit %d, %s", code, errs)
	}
	one := `{"apiVersion": "cce.baidubce.com/v2", "kind": "PodSubnetTopologySpread", "metadata": {"name": "a", "namespace": "b"}, "spec": {"subnets": {"sbn-a": []}}}`
	if code, out, errs := run(one, "import", "psts", "-f", "-"); code != 0 || !strings.Contains(out, "name: b-a\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestATimeIsWrittenAsPeopleDo(t *testing.T) {
	for want, text := range map[string]string{"168h": "168h0m0s", "1h30m": "90m", "5m": "5m", "5m10s": "310s", "10h": "10h", "1h0m5s": "1h5s"} {
		s := &strategy{Type: "Elastic", EnableReuseIPAddress: true, TTL: text}
		var is imported
		if err := is.setStrategy(s); err != nil || is.topology.Spec.Strategy.TTL != want {
			t.Errorf("%s: %q, %v, want %q", text, is.topology.Spec.Strategy.TTL, err, want)
		}
	}
}
