package manifests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	enipool "github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// requests notes what is asked of the API server, in the words of a role, and what
// it refuses.
type requests struct {
	http.RoundTripper
	mu            sync.Mutex
	asked, denied map[string]bool
}

func (r *requests) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.RoundTripper.RoundTrip(q)
	if err != nil {
		return answer, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	what := right(q)
	r.asked[what] = true
	if answer.StatusCode == http.StatusForbidden {
		r.denied[what] = true
	}
	return answer, nil
}

// right is the right that a request needs, like "patch nodes/status".
func right(q *http.Request) string {
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodPut: "update", http.MethodDelete: "delete"}[q.Method]
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")[2:] // behind api/v1
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	switch {
	case verb != "":
	case q.URL.Query().Get("watch") != "":
		verb = "watch"
	case len(parts) > 1:
		verb = "get"
	default:
		verb = "list"
	}
	if len(parts) > 2 {
		return verb + " " + parts[0] + "/" + parts[2]
	}
	return verb + " " + parts[0]
}

func (r *requests) list(of map[string]bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for what := range of {
		all = append(all, what)
	}
	slices.Sort(all)
	return all
}

// The agent does all that it ever asks of a cluster, and each of its rights is used.
func TestTheAgentNeedsAllItsRightsAndNoOthers(t *testing.T) {
	c := start(t, kube.Options{})
	c.install(root + "/base")
	c.addNode("n1", nil)
	config := c.config(c.agentToken("n1"))
	seen := &requests{asked: map[string]bool{}, denied: map[string]bool{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { seen.RoundTripper = next; return seen })
	node, err := enipool.New(enipool.Options{Node: "n1", Config: config, Taint: true})
	c.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	defer func() { stop(); c.must(<-ended) }()

	pod := podWith("web", func(p *corev1.Pod) { p.Spec.NodeName = "n1" })
	made, err := c.admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	c.must(err)
	c.Eventually("it knows its pod", func() error {
		if pods, known := node.Pods(); !known || len(pods) != 1 || pods[0].Name != "web" {
			return fmt.Errorf("pods %v, known %t", pods, known)
		}
		return nil
	})
	// The pod has not asked for its address, so one less is left to ask for.
	node.Report(health.Report{Faulty: true, Taint: true, Reason: health.SubnetExhausted, Message: "m", Capacity: 5})
	c.Eventually("condition, taint and resource", func() error { return c.shows("n1", corev1.ConditionTrue, 1, "4") })
	for range 2 {
		node.Warn(eni.Pod{UID: string(made.UID), Namespace: "default", Name: "web"}, "NoAddress", "none is free")
	}
	c.Eventually("an event that counts", func() error {
		list, err := c.admin.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=web"})
		if err == nil && (len(list.Items) != 1 || list.Items[0].Count != 2) {
			err = fmt.Errorf("%+v", list.Items)
		}
		return err
	})
	node.Report(health.Report{Reason: health.AddressesAvailable, Message: "m", Capacity: 7})
	c.Eventually("all is well", func() error { return c.shows("n1", corev1.ConditionFalse, 0, "6") })

	if denied := seen.list(seen.denied); len(denied) > 0 {
		t.Errorf("the API server refused to %v", denied)
	}
	if diff := cmp.Diff(rights(t, "enipool-agent"), seen.list(seen.asked)); diff != "" {
		t.Errorf("(-role +needed):\n%s", diff)
	}
}

// shows returns an error if the node does not show what was reported.
func (c *cluster) shows(name string, status corev1.ConditionStatus, taints int, capacity string) error {
	node, err := c.admin.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(node.Status.Conditions, func(n corev1.NodeCondition) bool { return n.Type == enipool.Condition })
	if i < 0 || node.Status.Conditions[i].Status != status {
		return fmt.Errorf("conditions %+v", node.Status.Conditions)
	}
	if n := len(node.Spec.Taints); n != taints {
		return fmt.Errorf("taints %+v", node.Spec.Taints)
	}
	if q := node.Status.Allocatable[enipool.Resource]; q.String() != capacity {
		return errors.New("resource " + q.String())
	}
	return nil
}
