package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/test/kube"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const migrate = "../../conf/migrate"

// labelled is an overlay as the page shows it.
func labelled(t *testing.T) string {
	t.Helper()
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, migrate+"/README.md"))
	if shown == nil {
		t.Fatal("the page shows no overlay")
	}
	dir := t.TempDir()
	text := strings.ReplaceAll(shown[1], "\n   ", "\n")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "   "), "../base", relative(t, dir, root+"/base"))
	text = strings.ReplaceAll(text, "../../migrate", relative(t, dir, migrate))
	for name, content := range map[string]string{"kustomization.yaml": text, "agent.yaml": read(t, root+"/overlays/aws/agent.yaml")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// While both plugins are in a cluster each node has one of them.
func TestWhileBothPluginsAreThereEachNodeHasOne(t *testing.T) {
	c := start(t, kube.Options{ControllerManager: true})
	c.addNode("old", nil)
	c.addNode("new", nil)
	c.Kubectl("label", "node", "new", "enipool.io/network=enipool")
	c.Apply(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: aws-node, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: aws-node}}
  template:
    metadata: {labels: {k8s-app: aws-node}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: aws-node, image: "none:1"}]
`)
	c.Kubectl("--namespace", "kube-system", "patch", "daemonset", "aws-node", "--patch-file", migrate+"/aws-node.yaml")
	c.install(labelled(t))
	c.Eventually("one plugin for each node", func() error {
		got := map[string][]string{}
		for _, program := range []string{"app.kubernetes.io/name=enipool-agent", "k8s-app=aws-node"} {
			pods, err := c.admin.CoreV1().Pods("kube-system").List(context.Background(), metav1.ListOptions{LabelSelector: program})
			if err != nil {
				return err
			}
			for _, p := range pods.Items {
				for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
					got[program] = append(got[program], namesIn(term)...)
				}
			}
		}
		if agents, others := got["app.kubernetes.io/name=enipool-agent"], got["k8s-app=aws-node"]; !slices.Equal(agents, []string{"new"}) || !slices.Equal(others, []string{"old"}) {
			return fmt.Errorf("agents on %v, aws-node on %v", agents, others)
		}
		return nil
	})
}

// The tag that people put into the overlay of the page is the one that nodes get: of the name that the base has.
func TestTheOverlayOfThePageNamesTheImage(t *testing.T) {
	text := build(t, labelled(t))
	if names, tagged := strings.Count(text, "image: "), strings.Count(text, "image: ghcr.io/enipool/enipool:TAG\n"); names == 0 || tagged != names {
		t.Errorf("%d of %d images have the tag of the page", tagged, names)
	}
}

// The affinity that people put into the values of a chart is that of the patch, but for what aws-node has by itself.
func TestTheAffinityForChartsIsThatOfThePatch(t *testing.T) {
	var ds appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte("spec:\n"+strings.SplitN(read(t, migrate+"/aws-node.yaml"), "spec:\n", 2)[1]), &ds); err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```yaml\n(affinity:.*?)```").FindStringSubmatch(read(t, migrate+"/cilium-eni.md"))
	var values struct{ Affinity json.RawMessage }
	if shown == nil {
		t.Fatal("no affinity is shown")
	}
	if err := yaml.Unmarshal([]byte(shown[1]), &values); err != nil {
		t.Fatal(err)
	}
	const own = `{"key":"enipool.io/network","operator":"NotIn","values":["enipool"]}`
	patch, err := json.Marshal(ds.Spec.Template.Spec.Affinity)
	if err != nil || !strings.Contains(string(patch), own) || !strings.Contains(string(values.Affinity), own) {
		t.Errorf("%s\n%s\n%v", patch, values.Affinity, err)
	}
}

// What the tables say that agent.yaml gets are keys of it.
func TestThePagesOfMigrationNameKeysThatThereAre(t *testing.T) {
	var schema struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(agentconf.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(migrate + "/*.md")
	if err != nil || len(pages) != 4 {
		t.Fatalf("%v: %v", pages, err)
	}
	keys := 0
	for _, page := range pages {
		_, table, _ := strings.Cut(read(t, page), "| agent.yaml gets |")
		table, _, _ = strings.Cut(table, "\n\n")
		for line := range strings.Lines(table) {
			cells := strings.Split(line, " | ")
			if len(cells) < 2 {
				continue
			}
			for _, m := range regexp.MustCompile("`([a-zA-Z]+)(?:\\.([a-zA-Z]+))?(?::[^`]*)?`").FindAllStringSubmatch(cells[1], -1) {
				section, is := schema.Properties[m[1]]
				if _, has := section.Properties[m[2]]; is && m[2] != "" {
					is = has
				}
				if allowed := []string{"mtu", "batch", "besteffort", "pool"}; !is && !slices.Contains(allowed, m[1]) {
					t.Errorf("%s: agent.yaml has no key %s: %s", page, m[0], line)
				}
				keys++
			}
		}
	}
	if keys < 30 {
		t.Errorf("only %d keys", keys)
	}
}
