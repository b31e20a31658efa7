package bundle

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

func agentPod(name, ready string, restarts int) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name, "namespace": "kube-system", "labels": map[string]any{"app.kubernetes.io/name": "enipool-agent"}},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "agent"}}}, "status": map[string]any{"phase": "Running",
			"conditions":        []any{map[string]any{"type": "Ready", "status": ready}},
			"containerStatuses": []any{map[string]any{"name": "agent", "restartCount": restarts, "ready": ready == "True"}}}}
}

// The logs are those of the pods that are worst off. What can't be read is told, and hides nothing else.
func TestOfAClusterTheWorstPodsHaveTheirLogsInTheBundle(t *testing.T) {
	s := clustertest.Start(t)
	const pods = "/api/v1/namespaces/kube-system/pods/"
	for _, name := range []string{"a-1", "a-2", "a-3", "a-4", "a-5", "a-6"} {
		s.Put(pods+name, agentPod(name, "True", 0))
	}
	s.Put(pods+"a-7", agentPod("a-7", "False", 2))
	s.Put(pods+"a-7/log", "why it is not ready; token=abc")
	s.Put("/apis/enipool.io/v1alpha1/subnets/subnet-1", map[string]any{"metadata": map[string]any{"name": "subnet-1"}})
	api, err := cluster.Open(s.Kubeconfig, "", "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	all, missing := readAll(t.Context(), ofCluster(t.Context(), api, "1.0"))
	texts := map[string]string{}
	for _, c := range all {
		texts[c.name] = string(c.text)
	}
	for name, want := range map[string]string{"subnets.json": `"subnet-1"`, "logs/a-7-agent.txt": "why it is not ready; token=" + gone, "logs/a-7-agent.before.txt": "why it is",
		"enipool-agent-pods.txt": "a-7 on : Running, agent ready false restarts 2", "summary.txt": "logs/a-1-agent.txt: read "} {
		if !strings.Contains(texts[name], want) {
			t.Errorf("%s: %q, want %q", name, texts[name], want)
		}
	}
	// The server knows no selectors: each of the two programs has all of the pods.
	if logs := strings.Count(texts["summary.txt"], "\nlogs/"); logs != 2*(mostPods-1) || len(missing) < logs {
		t.Errorf("%d logs of others, %d missing:\n%s", logs, len(missing), texts["summary.txt"])
	}
}

// Who sends a bundle of nothing has lost a night.
func TestOfAClusterThatCanNotBeReadThereIsNoBundle(t *testing.T) {
	dir := t.TempDir()
	conf, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "cluster.tar.gz")
	text := `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	code := cli.Run(t.Context(), Command("1.0"), []string{"--cluster", "--kubeconfig", conf, "--file", file}, &out, &said)
	if code != 2 || !strings.Contains(said.String(), "nothing of the cluster could be read, and no bundle was made: read /version: the API server can't be reached: ") {
		t.Errorf("exit %d: %s%s", code, &out, &said)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s: %v", file, err)
	}
}
