package manifests

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/test/kube"
)

// addWebhook has a webhook patch pods of namespaces with topologies as they are made or updated, by a JSON patch.
func (c *cluster) addWebhook(on admissionregistrationv1.OperationType, patch string) {
	c.t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		kind := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &kind, Patch: []byte(patch)}
		_ = json.NewEncoder(w).Encode(review)
	}))
	c.t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	none := admissionregistrationv1.SideEffectClassNone
	_, err := c.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(context.Background(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "theirs.example.com", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &s.URL, CABundle: ca},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"enipool.io/topologies": "enabled"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{on},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
	}, metav1.CreateOptions{})
	c.must(err)
}

// A webhook that puts gates of its own in the place of all that there are takes ours off: policies come before webhooks. The pod would be refused, and its owner
// would try for ever.
func TestAWebhookThatSetsGatesTakesNoneOfOursOff(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/topologies")
	c.addNamespace("db", map[string]string{"enipool.io/topologies": "enabled"})
	pods := c.admin.CoreV1().Pods("db")
	try := func() (string, error) {
		p := podWith("p", nil)
		p.Namespace = "db"
		made, err := pods.Create(context.Background(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return gates(made), err
	}
	c.Eventually("the policies count", func() error {
		if got, err := try(); err != nil || got != " "+gate {
			return fmt.Errorf("a pod has the gates%s, %v", got, err)
		}
		return nil
	})
	c.addWebhook(admissionregistrationv1.Create, `[{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "example.com/quota"}]}]`)
	c.Eventually("a pod waits for both", func() error {
		if got, err := try(); err != nil || got != " example.com/quota "+gate {
			return fmt.Errorf("it has the gates%s, %v", got, err)
		}
		return nil
	})
}

// A webhook may have pods as its policy says whenever they are updated, and so take off what the operator writes as it takes the gate off. The pod would run where it
// can have no address of its topology, or with any address. It keeps its gate, and the operator is told why.
func TestAWebhookTakesNothingOffThatClassifiesAPod(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/topologies")
	c.addNamespace("db", map[string]string{"enipool.io/topologies": "enabled"})
	c.Kubectl("create", "serviceaccount", "enipool-operator", "--namespace=kube-system")
	operator := c.as(strings.TrimSpace(c.Kubectl("create", "token", "enipool-operator", "--namespace=kube-system")))
	ctx := context.Background()
	pods := c.admin.CoreV1().Pods("db")
	classify := func(name string) (*corev1.Pod, error) {
		// The policy that adds the gate may not count yet.
		p := podWith(name, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}} })
		p.Namespace = "db"
		if made, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: "In", Values: []string{"a"}}}}
		affinity := corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{zone}}}}
		text, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/affinity", "value": affinity}, {"op": "add", "path": "/metadata/labels", "value": map[string]string{gate: "t"}},
			{"op": "add", "path": "/metadata/annotations", "value": map[string]string{gate: "t"}}, {"op": "remove", "path": "/spec/schedulingGates/0"}})
		c.must(err)
		return operator.CoreV1().Pods("db").Patch(ctx, name, types.JSONPatchType, text, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	}
	c.Eventually("a pod is classified", func() error {
		p, err := classify("p")
		if err == nil && (gates(p) != "" || p.Labels[gate] != "t" || p.Spec.Affinity == nil) {
			err = fmt.Errorf("gates%s, labels %v, affinity %v", gates(p), p.Labels, p.Spec.Affinity)
		}
		return err
	})
	for what, patch := range map[string]string{"zones": `[{"op": "remove", "path": "/spec/affinity"}]`, "annotation": `[{"op": "remove", "path": "/metadata/annotations"}]`} {
		c.addWebhook(admissionregistrationv1.Update, patch)
		c.Eventually("it is not without its "+what, func() error {
			if p, err := classify("p"); err == nil || !strings.Contains(err.Error(), "a webhook must leave them") {
				return fmt.Errorf("gates%s, annotations %v, affinity %v, %v", gates(p), p.Annotations, p.Spec.Affinity, err)
			}
			return nil
		})
		c.must(c.admin.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "theirs", metav1.DeleteOptions{}))
	}
}

// addNamespace makes a namespace in which pods can be made.
func (c *cluster) addNamespace(name string, labels map[string]string) {
	c.t.Helper()
	ctx := context.Background()
	_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
	c.must(err)
	c.Eventually("the account of "+name, func() error {
		_, err := c.admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if err != nil {
			_, err = c.admin.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		}
		return err
	})
}
