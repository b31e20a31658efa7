package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/enipool/enipool/test/kube"
)

// A tool that makes pods of a backup again, with all that an operator had written on them, is refused each; with the rule of the page the pods wait for their
// topology as new ones do.
func TestAPodOfABackupIsMadeAgainAsThePageSays(t *testing.T) {
	var rules struct {
		Version               string `json:"version"`
		ResourceModifierRules []struct {
			Conditions   map[string]string   `json:"conditions"`
			MergePatches []map[string]string `json:"mergePatches"`
		} `json:"resourceModifierRules"`
	}
	text := regexp.MustCompile(`(?m)^    version: v1\n(    .*\n)+`).FindString(read(t, root+"/topologies/README.md"))
	if err := yaml.UnmarshalStrict([]byte(text), &rules); err != nil || len(rules.ResourceModifierRules) != 1 || len(rules.ResourceModifierRules[0].MergePatches) != 1 {
		t.Fatalf("the page has no rule: %v, %q", err, text)
	}
	c := start(t, kube.Options{})
	c.install(root + "/topologies")
	c.addNamespace("db", map[string]string{"enipool.io/topologies": "enabled"})
	saved := podWith("mysql-0", func(p *corev1.Pod) {
		p.Namespace = "db"
		p.Labels, p.Annotations = map[string]string{"app": "mysql", gate: "databases"}, map[string]string{gate: "databases"}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"a"}}}}}}}}
	})
	before, err := json.Marshal(saved)
	c.must(err)
	after, err := jsonpatch.MergePatch(before, []byte(rules.ResourceModifierRules[0].MergePatches[0]["patchData"]))
	c.must(err)
	var again corev1.Pod
	c.must(json.Unmarshal(after, &again))
	try := func(p *corev1.Pod) (*corev1.Pod, error) {
		return c.admin.CoreV1().Pods("db").Create(context.Background(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	c.Eventually("what an operator has written keeps a pod out", func() error {
		if _, err := try(saved); err == nil || !strings.Contains(err.Error(), "written by the operator alone") {
			return fmt.Errorf("it is made: %v", err)
		}
		return nil
	})
	c.Eventually("a pod is made again and waits", func() error {
		made, err := try(&again)
		if err != nil || gates(made) != " "+gate || made.Labels["app"] != "mysql" || made.Labels[gate]+made.Annotations[gate] != "" {
			return fmt.Errorf("%v, gates%s, labels %v", err, gates(made), made.Labels)
		}
		return nil
	})
}
