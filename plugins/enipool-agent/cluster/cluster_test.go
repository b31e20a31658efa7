package cluster

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/kube"
)

func TestAClusterIsJoinedWhereThereIsOneOrSomebodySaysSo(t *testing.T) {
	mounted := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(mounted, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "/nowhere/token"
	for _, tt := range []struct {
		name       string
		enabled    agentconf.Switch
		kubeconfig string
		host       string
		account    string
		want       bool
	}{
		{"a plain node", agentconf.Auto, "", "", none, false},
		{"a pod with an account", agentconf.Auto, "", "10.0.0.1", mounted, true},
		{"a pod without an account", agentconf.Auto, "", "10.0.0.1", none, false},
		{"a token that was left behind", agentconf.Auto, "", "", mounted, false},
		{"a kubeconfig", agentconf.Auto, "/etc/kubernetes/agent.conf", "", none, true},
		{"switched on", agentconf.On, "", "", none, true},
		{"switched off in a pod", agentconf.Off, "", "10.0.0.1", mounted, false},
		{"switched off with a kubeconfig", agentconf.Off, "/etc/kubernetes/agent.conf", "", none, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", tt.host)
			if got := isReachable(agentconf.Kubernetes{Enabled: tt.enabled, Kubeconfig: tt.kubeconfig}, tt.account); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// An agent that is started where it is to leave its cluster alone says what is left there and how it goes.
func TestAnAgentThatIsSwitchedOffTellsWhatStaysOnTheNode(t *testing.T) {
	for _, tt := range []struct {
		name       string
		enabled    agentconf.Switch
		kubeconfig string
		want       bool
	}{
		{"with a kubeconfig", agentconf.Off, "/etc/kubernetes/agent.conf", true},
		{"on a plain node", agentconf.Off, "", false},
		{"and is not", agentconf.On, "/etc/kubernetes/agent.conf", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			var told strings.Builder
			tellLeft(agentconf.Kubernetes{Enabled: tt.enabled, Kubeconfig: tt.kubeconfig}, "node-7", "/nowhere/token", slog.New(slog.NewTextHandler(&told, nil)))
			if got := told.String(); strings.Contains(got, "kubectl taint node node-7 "+kube.Taint) != tt.want || (got != "") != tt.want {
				t.Errorf("it said %q", got)
			}
		})
	}
}
