package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/config/operatorconf"
	"github.com/goccy/go-yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parseConflist reads a conflist as libcni does, and our parts as the plugin does.
func parseConflist(t *testing.T, text string) {
	t.Helper()
	list, err := libcni.ConfListFromBytes([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	ours := 0
	for _, p := range list.Plugins {
		conf, err := config.ParsePlugin(p.Bytes)
		if err != nil {
			t.Error(err)
		}
		if p.Network.Type == config.PluginType || conf.Delegated {
			ours++
		}
		var multus struct{ Delegates []json.RawMessage } // networks as a whole
		if err := json.Unmarshal(p.Bytes, &multus); err != nil {
			t.Error(err)
		}
		for _, d := range multus.Delegates {
			parseConflist(t, string(d))
			ours++
		}
	}
	if ours == 0 {
		t.Errorf("enipool is not in it:\n%s", text)
	}
}

func TestFilesInConfAreReadByTheirReaders(t *testing.T) {
	files, err := filepath.Glob("../conf/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("conf is empty: %v", err)
	}
	// test/manifests, scripts/image and the clouds' own tests read what is in them.
	folders := []string{"kubernetes", "helm", "image", "aws", "baidu", "migrate"}
	for _, f := range files {
		if slices.Contains(folders, filepath.Base(f)) {
			continue
		}
		t.Run(filepath.Base(f), func(t *testing.T) {
			text := read(t, "conf/"+filepath.Base(f))
			switch filepath.Ext(f) {
			case ".conflist":
				parseConflist(t, text)
			case ".yaml":
				_, err := inventory.Parse([]byte(text))
				switch filepath.Base(f) {
				case "agent.yaml":
					_, err = agentconf.Parse([]byte(text))
				case "operator.yaml":
					_, err = operatorconf.Parse([]byte(text))
				case "alerts.yaml": // pkg/status/web looks at every rule
					err = yaml.Unmarshal([]byte(text), new(struct{ Groups []any }))
				}
				if err != nil {
					t.Error(err)
				}
			case ".json": // pkg/status/web looks at every panel
				if !json.Valid([]byte(text)) {
					t.Error("not JSON")
				}
			case ".go", ".md": // links, commands and blocks of pages are looked at elsewhere here
			default:
				t.Error("no reader is known for it: add one here")
			}
		})
	}
}

// The conflist for people explains every key of the plugin by showing it, but for dns,
// which is every plugin's and has no default to show.
func TestTheConflistShowsEveryKey(t *testing.T) {
	var list struct{ Plugins []map[string]any }
	if err := json.Unmarshal([]byte(read(t, "conf/10-enipool.conflist")), &list); err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile("`([a-zA-Z]+)`").FindAllStringSubmatch(section(t, "## The plugin's settings", "\n\nThe plugin's log"), -1)
	if len(keys) < 6 {
		t.Fatalf("the page's table of keys was not found: %v", keys)
	}
	for _, m := range keys {
		if _, ok := list.Plugins[0][m[1]]; !ok && m[1] != "false" && m[1] != "info" && m[1] != "dns" {
			t.Errorf("conf/10-enipool.conflist lacks %s", m[1])
		}
	}
}

func section(t *testing.T, from, to string) string {
	t.Helper()
	text := read(t, "conf/NODE.md")
	a := strings.Index(text, from)
	b := strings.Index(text[max(a, 0):], to)
	if a < 0 || b < 0 {
		t.Fatalf("conf/NODE.md has no %q ... %q", from, to)
	}
	return text[a : a+b]
}

func TestExamplesInTheREADMEAreReal(t *testing.T) {
	text := read(t, "README.md") + read(t, "conf/NODE.md")
	for _, block := range regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		switch block[1] {
		case "yaml":
			var err error
			if strings.Contains(block[2], "\ncloud:") {
				_, err = agentconf.Parse([]byte(block[2]))
			} else {
				_, err = inventory.Parse([]byte(block[2]))
			}
			if err != nil {
				t.Error(err)
			}
		case "json":
			parseConflist(t, block[2])
		case "ini":
			parseUnit(t, block[2], text)
		default:
			t.Errorf("nobody checks blocks of %s", block[1])
		}
	}
	makefile := read(t, "Makefile")
	for _, m := range regexp.MustCompile(`(?m)^    make ([a-z]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("make %s: no such target", m[1])
		}
	}
	ctl := enipoolctl(t)
	knows(t, ctl, regexp.MustCompile(`(?m)^    enipoolctl ([a-z]+ [a-z]+)`).FindAllStringSubmatch(text, -1))
	// Those that need neither root nor a node are run as they stand there.
	for _, m := range regexp.MustCompile(`(?m)^    enipoolctl ((?:pool size|plan|simulate|tune) --.*?)(?: +#.*)?$`).FindAllStringSubmatch(text, -1) {
		cmd := exec.Command(ctl, strings.Fields(m[1])...)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			t.Errorf("enipoolctl %s: %v\n%s", m[1], err, out)
		}
	}
}

// A fresh node has none of the folders that the page's commands put files into.
func TestThePageInstallsOnAFreshNode(t *testing.T) {
	root := t.TempDir()
	build := filepath.Join(root, ".build")
	if err := os.Mkdir(build, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"enipool", "enipoolctl", "enipool-agent"} {
		if err := os.WriteFile(filepath.Join(build, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := regexp.MustCompile(`(?m)^    ((?:mkdir|install) .*)$`).FindAllStringSubmatch(section(t, "## Install", "Here is a small agent.yaml"), -1)
	if len(commands) < 2 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, m := range commands {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(m[1], " /", " "+root+"/"))
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
	}
	for _, name := range []string{"opt/cni/bin/enipool", "usr/local/bin/enipoolctl", "usr/local/bin/enipool-agent", "etc/enipool", "etc/cni/net.d"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
}

// enipoolctl builds the program and returns its path.
func enipoolctl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "enipoolctl")
	if out, err := exec.Command("go", "build", "-o", path, "../plugins/enipoolctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// knows demands that the program has the commands.
func knows(t *testing.T, ctl string, commands [][]string) {
	t.Helper()
	if len(commands) < 3 {
		t.Fatalf("found only the commands %v", commands)
	}
	for _, m := range commands {
		out, err := exec.Command(ctl, append(strings.Fields(m[1]), "--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "enipoolctl "+m[1]) {
			t.Errorf("enipoolctl %s: %v\n%s", m[1], err, out)
		}
	}
}

// test/manifests compares its alerts, and pkg/health its reasons.
func TestThePageOnClustersNamesWhatThereIs(t *testing.T) {
	page := read(t, "conf/kubernetes/README.md")
	knows(t, enipoolctl(t), regexp.MustCompile(`-- enipoolctl ([a-z]+ [a-z]+)`).FindAllStringSubmatch(page, -1))
	for _, m := range regexp.MustCompile(`\]\(([a-zA-Z.][^)]*)\)`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("../conf/kubernetes", m[1])); err != nil {
			t.Errorf("link: %v", err)
		}
	}
	for _, m := range regexp.MustCompile(` -k (\S+)`).FindAllStringSubmatch(page+read(t, "README.md"), -1) {
		folder := strings.ReplaceAll(strings.Trim(m[1], "`,."), "/my-operator", "/operator") // a copy, which test/manifests makes
		if _, err := os.Stat(filepath.Join("..", folder, "kustomization.yaml")); err != nil {
			t.Errorf("kubectl -k: %v", err)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^|]*)` \\| (?:the base|a component|takes|account|components)").FindAllStringSubmatch(page, -1) {
		for _, name := range strings.Split(m[1], "`, `") {
			if _, err := os.Stat(filepath.Join("../conf/kubernetes", name, "kustomization.yaml")); err != nil {
				t.Errorf("folder: %v", err)
			}
		}
	}
	daemonset, makefile := read(t, "conf/kubernetes/base/daemonset.yaml"), read(t, "Makefile")
	for _, m := range regexp.MustCompile(` -c ([a-z]+) `).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(daemonset, "- name: "+m[1]+"\n") {
			t.Errorf("no container is called %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`make ([a-z]+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(makefile, "\n"+m[1]+":") {
			t.Errorf("make %s: no such target", m[1])
		}
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "conf/agent.yaml")), &keys); err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(pool|cloud|kubernetes)\\.([a-zA-Z]+)").FindAllStringSubmatch(page, -1)
	if len(named) < 5 {
		t.Errorf("found only the keys %v", named)
	}
	for _, m := range named {
		if section, _ := keys[m[1]].(map[string]any); section == nil {
			t.Errorf("conf/agent.yaml has no section %s", m[1])
		} else if _, ok := section[m[2]]; !ok {
			t.Errorf("conf/agent.yaml has no key %s.%s", m[1], m[2])
		}
	}
}
