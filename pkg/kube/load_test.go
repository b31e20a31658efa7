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
			for _, load := range []func() (*rest.Config, error){func() (*rest.Config, error) { return Load(name) }, func() (*rest.Config, error) { return LoadForPeople(name, "") }} {
				if _, err := load(); err != nil {
					tried++
					if strings.Contains(err.Error(), "secret") {
						t.Fatalf("%q in place of %q at %d: %v", with, kubeconfig[at], at, err)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d of them were errors", tried)
	}
}

// What people have is read as kubectl reads it.
func TestPeopleReachWhatKubectlReaches(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("ca.crt", "a certificate")
	one := write("one", kubeconfig)
	two := write("two", strings.NewReplacer("10.0.0.1", "10.0.0.2", "name: c,", "name: d,", "cluster: c,", "cluster: d,", "name: x", "name: other", "current-context: x", "").Replace(kubeconfig))
	broken := write("broken", "topsecret: [")
	t.Setenv("HOME", dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tt := range []struct {
		name, variable, file, context string
		want                          string
	}{
		{"the first of a list", one + ":" + two, "", "", "https://10.0.0.1:6443"},
		{"the current context is in the second file", filepath.Join(dir, "none") + ":" + one, "", "", "https://10.0.0.1:6443"},
		{"a context of the second file", one + ":" + two, "", "other", "https://10.0.0.2:6443"},
		{"a file that is named goes before the list", two, one, "", "https://10.0.0.1:6443"},
		{"no such context", one + ":" + two, "", "z", `it has no context "z"; it has: other, x`},
		{"no such file", one, filepath.Join(dir, "none"), "", "no such file"},
		{"a broken one in the list", one + ":" + broken, "", "", broken + ": it is not valid"},
		{"nothing", "", "", "", "this is no pod of a cluster"},
		{"a list of none that is there", filepath.Join(dir, "none"), "", "", "KUBECONFIG names " + filepath.Join(dir, "none")},
	} {
		t.Setenv("KUBECONFIG", tt.variable)
		c, err := LoadForPeople(tt.file, tt.context)
		switch {
		case err == nil && c.Host != tt.want:
			t.Errorf("%s: %s, want %s", tt.name, c.Host, tt.want)
		case err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "topsecret")):
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
	}
	t.Setenv("KUBECONFIG", "")
	write(".kube/config", kubeconfig)
	write(".kube/ca.crt", "a certificate")
	if c, err := LoadForPeople("", ""); err != nil || c.Host != "https://10.0.0.1:6443" || c.CAFile != filepath.Join(dir, ".kube/ca.crt") {
		t.Errorf("of the home: %+v, %v", c, err)
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
