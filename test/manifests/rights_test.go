package manifests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// rights returns what a role allows, like "list pods".
func rights(t *testing.T, name string) []string {
	t.Helper()
	var list []string
	for _, r := range named[*rbacv1.ClusterRole](t, name).Rules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				list = append(list, verb+" "+resource)
			}
		}
	}
	slices.Sort(list)
	return list
}

// A person has agreed to this list.
func TestTheAgentMayDoThisAndNothingElse(t *testing.T) {
	want := []string{
		"create events", "list nodes", "list pods", "patch events", "patch nodes", "patch nodes/status", "watch nodes", "watch pods",
	}
	if diff := cmp.Diff(want, rights(t, "enipool-agent")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more := []string{"create nodenetworks", "list nodenetworks", "patch nodenetworks", "watch nodenetworks"}
	if diff := cmp.Diff(more, rights(t, "enipool-agent-nodenetworks")); diff != "" {
		t.Errorf("with an operator (-want +got):\n%s", diff)
	}
	for _, r := range named[*rbacv1.ClusterRole](t, "enipool-agent").Rules {
		if len(r.APIGroups) != 1 || r.APIGroups[0] != "" || len(r.NonResourceURLs) > 0 || len(r.ResourceNames) > 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The same of the operator. That it needs no more plugins/enipool-operator shows, which runs it with this role.
func TestTheOperatorMayDoThisAndNothingElse(t *testing.T) {
	want := []string{"create events", "create subnets", "get nodenetworks", "list leases", "list nodenetworks", "list nodes", "list subnets", "patch events", "patch nodenetworks",
		"update nodenetworks/status", "update subnets/status", "watch nodenetworks", "watch nodes", "watch subnets"}
	if diff := cmp.Diff(want, rights(t, "enipool-operator")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	more := []string{"create addressclaims", "delete addressclaims", "get addressclaims", "list addressclaims", "list namespaces", "list pods", "list podsubnettopologies",
		"list statefulsets", "patch addressclaims", "patch pods", "update addressclaims/status", "update podsubnettopologies/status", "watch addressclaims", "watch namespaces", "watch pods", "watch podsubnettopologies"}
	if diff := cmp.Diff(more, rights(t, "enipool-operator-topologies")); diff != "" {
		t.Errorf("with topologies (-want +got):\n%s", diff)
	}
}

func TestTheAPIServerGrantsTheAgentItsRoleAndNothingElse(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	c.addNode("n1", nil)
	agent := c.as(c.agentToken("n1"))
	var got []string
	c.Eventually("the role counts", func() error {
		review, err := agent.AuthorizationV1().SelfSubjectRulesReviews().Create(context.Background(),
			&authv1.SelfSubjectRulesReview{Spec: authv1.SelfSubjectRulesReviewSpec{Namespace: "kube-system"}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if got = granted(review.Status); len(got) < len(rights(t, "enipool-agent")) {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	if diff := cmp.Diff(rights(t, "enipool-agent"), got); diff != "" {
		t.Errorf("(-role +granted):\n%s", diff)
	}
	for _, ask := range []string{
		"list secrets", "get secrets", "get pods", "create pods", "delete pods", "patch pods", "create pods/exec", "create pods/eviction", "get pods/log",
		"get nodes", "update nodes", "delete nodes", "create nodes", "get nodes/proxy", "update nodes/status", "list configmaps", "list events", "delete events",
		"create serviceaccounts/token", "list namespaces", "create clusterrolebindings", "impersonate users", "escalate clusterroles",
	} {
		if allowed(t, agent, ask) {
			t.Errorf("it may %s", ask)
		}
	}
}

// granted returns the rights of a review, without those of every account: questions
// about oneself.
func granted(s authv1.SubjectRulesReviewStatus) []string {
	var list []string
	for _, r := range s.ResourceRules {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				if !strings.HasPrefix(resource, "selfsubject") {
					list = append(list, verb+" "+resource)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

func allowed(t *testing.T, who *kubernetes.Clientset, ask string) bool {
	t.Helper()
	verb, resource, _ := strings.Cut(ask, " ")
	resource, sub, _ := strings.Cut(resource, "/")
	a := &authv1.ResourceAttributes{Verb: verb, Resource: resource, Subresource: sub}
	if strings.HasPrefix(resource, "cluster") {
		a.Group = rbacv1.GroupName
	}
	review, err := who.AuthorizationV1().SelfSubjectAccessReviews().Create(context.Background(),
		&authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: a}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
