package manifests

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	enipool "github.com/enipool/enipool/pkg/kube"
)

// nodeReadinessRule is one as the node-readiness-controller reads it.
type nodeReadinessRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Conditions []struct {
			Type           string                 `json:"type"`
			RequiredStatus corev1.ConditionStatus `json:"requiredStatus"`
		} `json:"conditions"`
		Taint           corev1.Taint         `json:"taint"`
		EnforcementMode string               `json:"enforcementMode"`
		NodeSelector    metav1.LabelSelector `json:"nodeSelector"`
		DryRun          bool                 `json:"dryRun,omitempty"`
	} `json:"spec"`
}

// The rule is for the condition that agents write, and its taint is no other than the one that autoscalers are to be told of.
func TestTheReadinessRuleIsForWhatAgentsTell(t *testing.T) {
	var rule nodeReadinessRule
	if err := yaml.UnmarshalStrict([]byte(read(t, root+"/readiness/rule.yaml")), &rule); err != nil {
		t.Fatal(err)
	}
	s := rule.Spec
	if rule.APIVersion != "readiness.node.x-k8s.io/v1alpha1" || rule.Kind != "NodeReadinessRule" || s.EnforcementMode != "bootstrap-only" || s.DryRun {
		t.Errorf("%+v", rule)
	}
	if len(s.Conditions) != 1 || s.Conditions[0].Type != string(enipool.NetworkReady) || s.Conditions[0].RequiredStatus != corev1.ConditionTrue {
		t.Errorf("%+v", s.Conditions)
	}
	if wrong := slices.Concat(validation.IsQualifiedName(s.Taint.Key), validation.IsValidLabelValue(s.Taint.Value)); len(wrong) > 0 ||
		!strings.HasPrefix(s.Taint.Key, "readiness.k8s.io/") || s.Taint.Effect != corev1.TaintEffectNoSchedule {
		t.Errorf("%+v: %v", s.Taint, wrong)
	}
	if page := read(t, root+"/README.md"); !strings.Contains(page, "`"+s.Taint.Key+"`") || !strings.Contains(page, "`"+s.Taint.Value+"`") {
		t.Errorf("the page does not name the taint %s", s.Taint.ToString())
	}
	if _, err := metav1.LabelSelectorAsSelector(&s.NodeSelector); err != nil || len(s.NodeSelector.MatchLabels) == 0 {
		t.Errorf("%+v: %v", s.NodeSelector, err)
	}
}
