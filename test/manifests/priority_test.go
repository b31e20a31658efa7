package manifests

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/enipool/enipool/test/kube"
)

// The most nodes that an operator is for, and how many requests an agent's start has under way at once: a list of its Node, of
// its pods and of its NodeNetwork.
const (
	mostNodes = 5000
	atStart   = 3
)

// All agents are one user, which is one flow: what its queues do not take is refused.
func TestAgentsThatStartAtOnceWait(t *testing.T) {
	level := named[*flowcontrolv1.PriorityLevelConfiguration](t, "enipool-agents")
	q := level.Spec.Limited.LimitResponse.Queuing
	if room := int(q.HandSize * q.QueueLengthLimit); room < mostNodes*atStart {
		t.Errorf("%d requests of agents can wait, and %d nodes send %d", room, mostNodes, mostNodes*atStart)
	}
}

// flowOf returns by which FlowSchema a request is handled.
func (c *cluster) flowOf(token, method, path string) string {
	c.t.Helper()
	client, err := rest.HTTPClientFor(c.config(token))
	c.must(err)
	request, err := http.NewRequestWithContext(context.Background(), method, c.Config().Host+path, nil)
	c.must(err)
	answer, err := client.Do(request)
	c.must(err)
	c.must(answer.Body.Close())
	all, err := c.admin.FlowcontrolV1().FlowSchemas().List(context.Background(), metav1.ListOptions{})
	c.must(err)
	for _, f := range all.Items {
		if string(f.UID) == answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) {
			return f.Name + " of " + f.Spec.PriorityLevelConfiguration.Name
		}
	}
	return "none"
}

// What agents ask for in thousands waits for itself alone, and the operator for neither agents nor what else runs in kube-system. Leases
// have the level that the cluster gives them.
func TestAgentsAndOperatorsHaveFlowsOfTheirOwn(t *testing.T) {
	c := start(t, kube.Options{Fairness: true})
	c.install(root + "/base")
	c.install(root + "/crds")
	c.install(root + "/operator")
	token := func(account string) string {
		return strings.TrimSpace(c.Kubectl("create", "token", account, "--namespace=kube-system"))
	}
	c.Kubectl("create", "serviceaccount", "other", "--namespace=kube-system")
	agent, operator, other := token("enipool-agent"), token("enipool-operator"), token("other")
	networks := "/apis/enipool.io/v1alpha1/nodenetworks"
	for _, tt := range []struct{ who, token, method, path, want string }{
		{"an agent", agent, http.MethodGet, networks, "enipool-agents of enipool-agents"},
		{"an agent", agent, http.MethodGet, "/api/v1/pods", "enipool-agents of enipool-agents"},
		{"an agent", agent, http.MethodPost, "/api/v1/namespaces/default/events", "enipool-agents of enipool-agents"},
		{"an operator", operator, http.MethodPut, networks + "/n1/status", "enipool-operator of workload-high"},
		{"an operator", operator, http.MethodGet, "/api/v1/nodes", "enipool-operator of workload-high"},
		{"an operator", operator, http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/enipool-operator", "system-leader-election of leader-election"},
		{"another one", other, http.MethodGet, "/api/v1/nodes", "kube-system-service-accounts of workload-high"},
	} {
		c.Eventually(tt.who, func() error {
			if got := c.flowOf(tt.token, tt.method, tt.path); got != tt.want {
				return fmt.Errorf("%s %s is handled by %s, want %s", tt.method, tt.path, got, tt.want)
			}
			return nil
		})
	}
}
