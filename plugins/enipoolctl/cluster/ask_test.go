package cluster

import (
	"net/http"
	"strings"
	"testing"

	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

// How to reach pages on the loopback helps nobody whose operator does not run, or answers that it does not lead.
func TestWhyNoOperatorAnswersIsToldWithWhatHelpsThen(t *testing.T) {
	for _, tt := range []struct{ name, phase, answer, want string }{
		{"it has ended", "Failed", "", "no operator can be asked: op-1 is Failed; `kubectl --namespace kube-system describe pod op-1` and its log say more"},
		{"it has not begun", "Pending", "", "op-1 is Pending; `kubectl "},
		{"it does not lead", "Running", "this operator does not lead", "op-1: this operator does not lead; `kubectl "},
		{"it listens on its loopback", "Running", "error trying to reach service: dial tcp 10.0.0.9:9810: connect: connection refused", "; where the operators listen on their loopback alone use "},
	} {
		s := clustertest.Start(t)
		s.Put("/api/v1/namespaces/kube-system/pods/op-1", map[string]any{"metadata": map[string]any{"name": "op-1", "labels": map[string]any{"app.kubernetes.io/name": "enipool-operator"}},
			"status": map[string]any{"phase": tt.phase}})
		s.Serve("op-1:9810", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, tt.answer, http.StatusServiceUnavailable) }))
		api, err := Open(s.Kubeconfig, "", "kube-system")
		if err != nil {
			t.Fatal(err)
		}
		err = Asker{API: api, Port: "9810"}.Ask(t.Context(), "/budget", nil, new(struct{}))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
