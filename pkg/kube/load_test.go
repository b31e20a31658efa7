package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority: ca.crt}}]
users: [{name: u, user: {token: topsecret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func TestLoadReadsAKubeconfig(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	for file, text := range map[string]string{name: kubeconfig, filepath.Join(filepath.Dir(name), "ca.crt"): "a certificate"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if c.Host != "https://10.0.0.1:6443" || c.BearerToken != "topsecret" || c.CAFile != filepath.Join(filepath.Dir(name), "ca.crt") {
		t.Errorf("host %s, CA %s, token as written: %t", c.Host, c.CAFile, c.BearerToken == "topsecret")
	}
}

func TestLoadSaysWhatToDo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := Load("")
	want := "find the API server: this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set) and no kubeconfig is named"
	if err == nil || err.Error() != want {
		t.Errorf("outside of a cluster: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err = Load(""); err == nil || !strings.Contains(err.Error(), "service account") {
		t.Errorf("without a service account: %v", err)
	}
	if _, err = Load("/does/not/exist"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without the file: %v", err)
	}
}

// A broken kubeconfig must not come out in the error: it may be broken where the
// secret is.
func TestLoadNeverQuotesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	tried := 0
	for at := range len(kubeconfig) {
		for _, with := range []string{"", "{", "\n", "!!int "} {
			broken := kubeconfig[:at] + with + kubeconfig[at+1:]
			if err := os.WriteFile(name, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(name); err != nil {
				tried++
				if strings.Contains(err.Error(), "secret") {
					t.Fatalf("%q in place of %q at %d: %v", with, kubeconfig[at], at, err)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d of them were errors", tried)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Options{Config: &rest.Config{}}); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("without a node: %v", err)
	}
	if _, err := New(Options{Node: here}); err == nil || !strings.Contains(err.Error(), "no API server") {
		t.Errorf("without a config: %v", err)
	}
	if _, err := New(Options{Node: here, Config: &rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}}); err == nil {
		t.Error("a certificate that can't be read is no error")
	}
}
