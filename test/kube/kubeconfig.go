package kube

import (
	"encoding/json"
	"os"
	"strings"
)

// Kubeconfig returns the path of a kubeconfig for a user of some groups, who shows
// a certificate. The user "admin" of no group is the administrator.
func (c *Cluster) Kubeconfig(user string, groups ...string) string {
	c.t.Helper()
	if user == "admin" && len(groups) == 0 {
		groups = []string{"system:masters"}
	}
	return c.kubeconfigAt(c.Config().Host, user, groups)
}

// kubeconfigAt is Kubeconfig for someone who sees the API server at another address.
func (c *Cluster) kubeconfigAt(host, user string, groups []string) string {
	c.t.Helper()
	p, err := c.ca.client(user, groups)
	c.must(err)
	return c.writeKubeconfig(host, user, map[string]any{"client-certificate-data": p.cert, "client-key-data": p.key})
}

// ServiceAccountKubeconfig returns the path of a kubeconfig with a fresh token of a
// service account, which exists already, so with exactly its rights.
func (c *Cluster) ServiceAccountKubeconfig(namespace, name string) string {
	c.t.Helper()
	token := c.Kubectl("create", "token", name, "--namespace="+namespace, "--duration=1h")
	return c.writeKubeconfig(c.Config().Host, namespace+"-"+name, map[string]any{"token": strings.TrimSpace(token)})
}

// writeKubeconfig writes one as JSON, which is YAML too.
func (c *Cluster) writeKubeconfig(host, user string, proof map[string]any) string {
	c.t.Helper()
	type named map[string]any
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []named{{"name": "test", "cluster": named{"server": host, "certificate-authority-data": c.ca.pem}}},
		"users":    []named{{"name": user, "user": proof}},
		"contexts": []named{{"name": "test", "context": named{"cluster": "test", "user": user}}},
	})
	c.must(err)
	path := c.path(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
	c.must(os.WriteFile(path, text, 0o600))
	return path
}
