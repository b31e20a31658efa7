package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/test/kube"
)

// The page tells how to look into a node of a cluster; its lines are run as they stand, beside pods of the node.
func TestTheDebugSectionOfThePage(t *testing.T) {
	t.Parallel()
	c := start(t, "debug")
	n := c.addNode("debug-a")
	c.install(c.overlay(simulated, first, settings, ""))
	const pods = 2
	c.Apply(fmt.Sprintf(web, pods))
	c.run(pods)
	blocks := debugBlocks(t)
	if len(blocks) != 3 {
		c.t.Fatalf("the section has %d blocks of commands, want those of kubectl, of a debugger, and of cnitool", len(blocks))
	}
	words := strings.NewReplacer("NODE ", n.Name+" ", "node/NODE", "node/"+n.Name, "--image=busybox", "--image="+kube.BusyboxImage,
		"kubectl ", c.kubectl()+" ", ".build/cni/", filepath.Join(root(t), ".build", "cni")+"/", "exec -it", "exec -i")
	out := sh(t, words.Replace(blocks[0]))
	for _, want := range []string{"ready, mode batch", "ENI ", "installed /opt/cni/bin/enipool", "for an address",
		"left out: what is inside the network namespaces of 2 pods", "cache and kernel agree"} {
		if !strings.Contains(out, want) {
			c.t.Errorf("no %q in\n%s", want, out)
		}
	}

	debugger, into, _ := strings.Cut(blocks[1], "\n")
	sh(t, words.Replace(strings.Split(debugger, "#")[0]))
	c.Eventually("the debugger runs", func() error {
		_, err := c.TryKubectl("wait", "--for=condition=Ready", "--timeout=1s", "pod", "--selector=!app", "--namespace=default")
		return err
	})
	name := strings.TrimSpace(c.Kubectl("get", "pod", "--selector=!app", "--output=name"))
	into = strings.ReplaceAll(words.Replace(into), "DEBUGGER", strings.TrimPrefix(name, "pod/"))
	out = sh(t, strings.TrimSpace(into)+" <<'END'\nset -ex\n"+blocks[2]+"END\n")
	for _, want := range []string{`"ips"`, "192.0.2.1 via 169.254.1.1 dev eth0"} {
		if !strings.Contains(out, want) {
			c.t.Errorf("no %q in\n%s", want, out)
		}
	}
	if sum(n.used()) != pods {
		c.t.Errorf("used by ENI: %v after the debugging", n.used())
	}
}

// kubectl is the program with what it needs to reach the cluster.
func (c *cluster) kubectl() string {
	c.t.Helper()
	bin, err := kube.Assets()
	c.must(err)
	return filepath.Join(bin, "kubectl") + " --kubeconfig=" + c.Kubeconfig("admin")
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// debugBlocks returns the indented blocks of the page's section.
func debugBlocks(t *testing.T) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile("../../conf/kubernetes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Debug\n")
	open := false
	for line := range strings.Lines(section) {
		command, ok := strings.CutPrefix(line, "    ")
		switch {
		case ok && open:
			blocks[len(blocks)-1] += command
		case ok:
			blocks = append(blocks, command)
		}
		open = ok
	}
	return blocks
}

// sh runs lines of a shell, none of which may fail, and returns all that they print.
func sh(t *testing.T, lines string) string {
	t.Helper()
	out, err := exec.Command("bash", "-c", "set -e\n"+lines).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nsaid\n%s", err, lines, out)
	}
	return string(out)
}
