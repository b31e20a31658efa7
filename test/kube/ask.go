package kube

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Config returns how the administrator reaches the API server.
func (c *Cluster) Config() Config {
	return Config{Host: "https://" + c.host + ":6443", CA: string(c.ca.pem), Token: c.token}
}

// serves returns nil if the API server is ready.
func (c *Cluster) serves() error { return c.Get("/readyz", nil) }

// Get reads a path of the API, like "/api/v1/nodes/n1", as the administrator, and
// decodes the answer unless into is nil.
func (c *Cluster) Get(path string, into any) error {
	trusted := x509.NewCertPool()
	trusted.AddCert(c.ca.cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	defer transport.CloseIdleConnections() // its goroutines end with the call
	request, err := http.NewRequest(http.MethodGet, c.Config().Host+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("get %s: %w", path, err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("get %s: %s: %s", path, answer.Status, body)
	case into == nil:
		return nil
	}
	return json.Unmarshal(body, into)
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.TryKubectl(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// TryKubectl is Kubectl for a command that may fail. Its standard error is in the
// error, or else it is not shown.
func (c *Cluster) TryKubectl(args ...string) (string, error) {
	return c.KubectlAs(c.admin, args...)
}

// KubectlAs is TryKubectl with the rights of a kubeconfig.
func (c *Cluster) KubectlAs(kubeconfig string, args ...string) (string, error) {
	return output(c.kubectl(kubeconfig, args...))
}

func (c *Cluster) kubectl(kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, "kubectl"), append([]string{"--kubeconfig=" + kubeconfig, "--cache-dir=" + c.path("kubectl")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir)
	return cmd
}

// Apply creates or changes the objects of a manifest, YAML or JSON.
func (c *Cluster) Apply(manifest string) {
	c.t.Helper()
	cmd := c.kubectl(c.admin, "apply", "--filename=-")
	cmd.Stdin = strings.NewReader(manifest)
	_, err := output(cmd)
	c.must(err)
}
