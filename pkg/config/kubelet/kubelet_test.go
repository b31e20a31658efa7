package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes the root folder of a machine. A name that ends in "->" is a link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name, link := strings.CutSuffix(name, "->")
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil && link {
			err = os.Symlink(text, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// merge returns all files of all maps.
func merge(maps ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range maps {
		for name, text := range m {
			all[name] = text
		}
	}
	return all
}

// running is a kubelet with the arguments.
func running(args ...string) map[string]string {
	return map[string]string{
		"proc/7/comm":      "kubelet-wrapper\n",
		"proc/7/cmdline":   "kubelet-wrapper\x00--max-pods=1\x00",
		"proc/42/comm":     "kubelet\n",
		"proc/42/cmdline":  strings.Join(append([]string{"/usr/bin/kubelet"}, args...), "\x00") + "\x00",
		"proc/100/comm":    "kubelet\n",
		"proc/100/cmdline": "kubelet\x00--max-pods=2\x00",
		"proc/uptime":      "1 1",
	}
}

const yamlFile = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}}
maxPods: %d
unknownKey: 3
`

func withPods(n int) string { return fmt.Sprintf(yamlFile, n) }

func TestMaxPodsComesFromWhoKnowsBest(t *testing.T) {
	const usual = "var/lib/kubelet/config.yaml"
	dropins := map[string]string{
		"etc/d/10-a.conf":     withPods(61),
		"etc/d/20-b.conf":     withPods(62),
		"etc/d/sub/x.conf":    "maxPods: 63",
		"etc/d/zz-other.conf": "kind: KubeletConfiguration",
		"etc/d/zz.yaml":       withPods(64),
	}
	for _, tt := range []struct {
		name  string
		fixed int
		file  string
		root  map[string]string
		want  int
		from  string
	}{
		{"nobody", 0, "", nil, 110, "default"},
		{"the agent's configuration before all", 30, "/etc/f", merge(running("--max-pods=58"), map[string]string{"etc/f": withPods(50)}), 30, "maxPods of the agent's configuration"},
		{"a flag", 0, "", running("--max-pods=58"), 58, "kubelet --max-pods"},
		{"a flag with its value apart", 0, "", running("--v", "2", "--max-pods", "58", "--port=0"), 58, "kubelet --max-pods"},
		{"a flag with an underscore", 0, "", running("--max_pods=58"), 58, "kubelet --max-pods"},
		{"a flag given twice", 0, "", running("--max-pods=58", "--max-pods=59"), 59, "kubelet --max-pods"},
		{"a flag of no number", 0, "", running("--max-pods=many"), 110, "default"},
		{"a flag that says the default", 0, "", running("--max-pods=0"), 110, "default"},
		{"a flag without a value", 0, "", running("--max-pods"), 110, "default"},
		{"nothing behind --", 0, "", running("--", "--max-pods=58"), 110, "default"},
		{"a flag before the files", 0, "/etc/f", merge(running("--max-pods=58", "--config=/etc/f", "--config-dir=/etc/d"), dropins,
			map[string]string{"etc/f": withPods(50)}), 58, "kubelet --max-pods"},
		{"the file of --config", 0, "", merge(running("--config=/etc/f"), map[string]string{"etc/f": withPods(50), usual: withPods(1)}), 50, "/etc/f"},
		{"no file but that of a kubelet that is seen", 0, "", merge(running(), map[string]string{usual: withPods(1)}), 110, "default"},
		{"the kubelet's file through its eyes", 0, "", merge(running("--config", "/etc/f"), map[string]string{"etc/f": withPods(1), "proc/42/root/etc/f": withPods(50)}), 50, "/etc/f"},
		{"the kubelet's file from where it stands", 0, "", merge(running("--config", "conf/f"), map[string]string{"srv/conf/f": withPods(50), "proc/42/cwd->": "../../srv"}), 50, "conf/f"},
		{"drop-ins before the file, the last first", 0, "", merge(running("--config=/etc/f", "--config-dir=/etc/d"), dropins, map[string]string{"etc/f": withPods(50)}), 63, "/etc/d/sub/x.conf"},
		{"drop-ins without a file", 0, "", merge(running("--config-dir=/etc/d"), dropins), 63, "/etc/d/sub/x.conf"},
		{"a drop-in that takes the file's word back", 0, "", merge(running("--config=/etc/f", "--config-dir=/etc/d"),
			map[string]string{"etc/f": withPods(50), "etc/d/a.conf": withPods(0)}), 110, "default"},
		{"the file we are told of", 0, "/etc/g", map[string]string{"etc/g": withPods(51), usual: withPods(1), "etc/kubernetes/kubelet.conf.d/a.conf": withPods(2)}, 51, "/etc/g"},
		{"the file we are told of, before --config", 0, "/etc/g", merge(running("--config=/etc/f"), map[string]string{"etc/g": withPods(51), "etc/f": withPods(50)}), 51, "/etc/g"},
		{"a file that says nothing", 0, "/etc/g", map[string]string{"etc/g": "kind: KubeletConfiguration\n"}, 110, "default"},
		{"an empty file", 0, "/etc/g", map[string]string{"etc/g": ""}, 110, "default"},
		{"a file of comments", 0, "/etc/g", map[string]string{"etc/g": "# nothing\n"}, 110, "default"},
		{"JSON", 0, "/etc/g", map[string]string{"etc/g": "{\n\t\"kind\": \"KubeletConfiguration\",\n\t\"maxPods\": 52\n}"}, 52, "/etc/g"},
		{"a key that is there twice", 0, "/etc/g", map[string]string{"etc/g": "port: 1\nport: 2\nmaxPods: 52\n"}, 52, "/etc/g"},
		{"the usual place", 0, "", map[string]string{usual: withPods(53)}, 53, "/" + usual},
		{"the second usual place", 0, "", map[string]string{"etc/kubernetes/kubelet/kubelet-config.json": `{"maxPods":54}`}, 54, "/etc/kubernetes/kubelet/kubelet-config.json"},
		{"the third usual place", 0, "", map[string]string{"etc/kubernetes/kubelet/config.json": `{"maxPods":55}`}, 55, "/etc/kubernetes/kubelet/config.json"},
		{"the first usual place before the second", 0, "", map[string]string{usual: "{}", "etc/kubernetes/kubelet/kubelet-config.json": `{"maxPods":54}`}, 110, "default"},
		{"the usual drop-ins", 0, "", map[string]string{usual: withPods(53), "etc/kubernetes/kubelet.conf.d/10-x.conf": withPods(56)}, 56, "/etc/kubernetes/kubelet.conf.d/10-x.conf"},
		{"the usual drop-ins alone", 0, "", map[string]string{"etc/kubernetes/kubelet.conf.d/10-x.conf": withPods(56)}, 56, "/etc/kubernetes/kubelet.conf.d/10-x.conf"},
		{"drop-ins beside the third usual place", 0, "", map[string]string{"etc/kubernetes/kubelet/config.json": `{"maxPods":55}`,
			"etc/kubernetes/kubelet/config.json.d/40.conf": `{"maxPods":57}`}, 57, "/etc/kubernetes/kubelet/config.json.d/40.conf"},
		{"a kubelet that has just ended", 0, "", map[string]string{"proc/42/comm": "kubelet\n", "proc/42/cmdline": "", usual: withPods(53)}, 53, "/" + usual},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, from, err := MaxPods(tt.fixed, tt.file, tree(t, tt.root))
			if n != tt.want || from != tt.from || err != nil {
				t.Errorf("%d from %q, %v; want %d from %q", n, from, err, tt.want, tt.from)
			}
		})
	}
}

// The number is good to use even where something could not be read.
func TestWhatCanNotBeReadIsToldAndHidesNothingElse(t *testing.T) {
	const usual = "var/lib/kubelet/config.yaml"
	for _, tt := range []struct {
		name string
		file string
		root map[string]string
		want int
		err  string
	}{
		{"the file we are told of is missing", "/etc/g", nil, 110, "read kubelet's configuration: open ROOT/etc/g: no such file or directory"},
		{"the file of --config is missing", "", running("--config=/etc/f"), 110, "read kubelet's configuration: open ROOT/etc/f: no such file or directory"},
		{"the folder of --config-dir is missing", "", merge(running("--config=/etc/f", "--config-dir=/etc/d"), map[string]string{"etc/f": withPods(50)}),
			50, "read kubelet's drop-ins: stat ROOT/etc/d: no such file or directory"},
		{"a file is no YAML", "", map[string]string{usual: "{maxPods: 3"}, 110, "read kubelet's configuration /" + usual + ": [1:1] could not find flow mapping end token '}'"},
		{"a file has a word for the number", "", map[string]string{usual: "maxPods: many"}, 110,
			"read kubelet's configuration /" + usual + ": [1:10] cannot unmarshal string into Go struct field .MaxPods of type int32"},
		{"a number is too large", "", map[string]string{usual: "maxPods: 99999999999"}, 110,
			"read kubelet's configuration /" + usual + ": [1:10] cannot unmarshal 99999999999 into Go value of type int32 ( overflow )"},
		{"one drop-in is no YAML", "", merge(running("--config-dir=/etc/d"), map[string]string{"etc/d/1.conf": withPods(50), "etc/d/2.conf": "- x", "etc/d/3.conf": "x: 1"}), 50,
			"read kubelet's configuration /etc/d/2.conf: [1:1] sequence was used where mapping is expected"},
		{"the usual place is a folder", "", map[string]string{usual + "/x": ""}, 110, "read kubelet's configuration: read ROOT/" + usual + ": is a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.root)
			n, _, err := MaxPods(0, tt.file, root)
			if diff := cmp.Diff(tt.err, strings.ReplaceAll(fmt.Sprint(err), root, "ROOT")); diff != "" || n != tt.want {
				t.Errorf("%d, want %d (-want +got):\n%s", n, tt.want, diff)
			}
		})
	}
}

// On whatever machine this runs.
func TestTheRealMachineHasANumber(t *testing.T) {
	if n, from, _ := MaxPods(0, "", "/"); n <= 0 || from == "" {
		t.Errorf("%d from %q", n, from)
	}
}

func FuzzParseFile(f *testing.F) {
	for _, text := range []string{withPods(50), `{"maxPods": 52}`, "maxPods: many", "- x", "a: &a [*a]\nmaxPods: 1", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseFile("/f", text); got.source == "" && got.maxPods != 0 || got.source != "" && err != nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
