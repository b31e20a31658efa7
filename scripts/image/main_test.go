package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// project is the Containerfile that is shipped.
const project = "../../conf/image/Containerfile"

// write makes a folder of files; those in bin folders are programs.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.Contains(name, "/") {
			mode = 0o700
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// small is a context for the project's own Containerfile.
func small(t *testing.T, archs ...string) string {
	t.Helper()
	files := map[string]string{"LICENSE": "as is"}
	for _, arch := range archs {
		for _, name := range []string{"loopback", "portmap", "bandwidth", "enipool", "enipoolctl", "enipool-agent"} {
			files[arch+"/"+name] = name + " for " + arch
		}
	}
	return write(t, files)
}

// build makes an archive and returns its path.
func build(t *testing.T, context string, args ...string) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "new", "image.tar")
	err := run(append([]string{"-o", out, "-file", project, "-context", context}, args...), io.Discard)
	return out, err
}

// untar reads a tar: its files by name, and of each what a reader of the image sees.
func untar(t *testing.T, r io.Reader) (files map[string][]byte, seen []string) {
	t.Helper()
	files = map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files, seen
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Sprintf("%s %o %d:%d %s", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.UTC().Format(time.DateOnly)))
	}
}

// open reads an archive back, and wants all of it to be what its digests say.
func open(t *testing.T, path string) v1.ImageIndex {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, _ := untar(t, bytes.NewReader(text))
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	return top
}

// manifests returns what an index lists.
func manifests(t *testing.T, index v1.ImageIndex) []v1.Descriptor {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return m.Manifests
}

func TestTheArchiveHoldsWhatTheContainerfileSays(t *testing.T) {
	out, err := build(t, small(t, "amd64", "arm64"), "-version", "v1.2.3", "-name", "ghcr.io/enipool/enipool:v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	top := open(t, out)
	named := manifests(t, top)
	if len(named) != 1 {
		t.Fatalf("%+v", named)
	}
	if diff := cmp.Diff(map[string]string{"io.containerd.image.name": "ghcr.io/enipool/enipool:v1.2.3", "org.opencontainers.image.ref.name": "v1.2.3"}, named[0].Annotations); diff != "" {
		t.Error(diff)
	}
	all, err := top.ImageIndex(named[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		d := manifests(t, all)[i]
		if d.Platform.OS != "linux" || d.Platform.Architecture != arch {
			t.Errorf("%+v", d.Platform)
		}
		image, err := all.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		hasImage(t, image, arch)
	}
}

// hasImage looks at the image of one architecture.
func hasImage(t *testing.T, image v1.Image, arch string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != arch || config.OS != "linux" || config.Config.User != "0:0" || config.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("%+v", config)
	}
	if diff := cmp.Diff([]string{"/bin/enipool-agent"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range layers {
		if kind, err := l.MediaType(); kind != types.OCILayer || err != nil {
			t.Errorf("a layer is %s, %v", kind, err)
		}
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		files, seen := untar(t, r)
		if text, ok := files["bin/enipool"]; ok && string(text) != "enipool for "+arch {
			t.Errorf("of another architecture: %s", text)
		}
		got = append(got, seen...)
	}
	want := []string{"LICENSE 644 0:0 1970-01-01",
		"bin/ 755 0:0 1970-01-01", "bin/bandwidth 755 0:0 1970-01-01", "bin/loopback 755 0:0 1970-01-01", "bin/portmap 755 0:0 1970-01-01",
		"bin/ 755 0:0 1970-01-01", "bin/enipool 755 0:0 1970-01-01", "bin/enipool-agent 755 0:0 1970-01-01", "bin/enipoolctl 755 0:0 1970-01-01"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The operator's image has one program, which nobody runs as root.
func TestTheImageOfTheOperator(t *testing.T) {
	out, err := build(t, write(t, map[string]string{"LICENSE": "as is", "amd64/enipool-operator": "program"}), "-file", project+".operator", "-arch", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := untar(t, bytes.NewReader(text))
	var configs int
	for _, text := range files {
		var image struct {
			Config struct {
				User       string
				Entrypoint []string
			}
		}
		if json.Unmarshal(text, &image) != nil || image.Config.Entrypoint == nil {
			continue
		}
		configs++
		if image.Config.User != "65532:65532" || !slices.Equal(image.Config.Entrypoint, []string{"/bin/enipool-operator"}) {
			t.Errorf("%+v", image)
		}
	}
	if configs != 1 {
		t.Errorf("%d configurations", configs)
	}
}

func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	var first []byte
	for i := range 3 {
		context := small(t, "amd64", "arm64")
		then := time.Now().AddDate(-i, 0, 0)
		if err := os.Chtimes(filepath.Join(context, "amd64/enipool"), then, then); err != nil {
			t.Fatal(err)
		}
		archs := []string{"amd64,arm64", "arm64,amd64", "amd64,amd64,arm64"}[i]
		out, err := build(t, context, "-arch", archs)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if !bytes.Equal(first, text) {
			t.Errorf("archive %d is another one", i)
		}
	}
}

func TestWhatABuilderWouldDoOtherwiseIsRefused(t *testing.T) {
	context := write(t, map[string]string{"a": "x"})
	for _, tt := range []struct{ name, file, want string }{
		{"another base", "FROM debian\n", "FROM debian: it must begin with FROM scratch"},
		{"no base", "COPY a /\n", "COPY a /: it must begin with FROM scratch"},
		{"two stages", "FROM scratch\nFROM scratch\n", "FROM scratch: FROM is not among"},
		{"a command", "FROM scratch\nRUN make\n", "RUN make: RUN is not among"},
		{"a flag", "FROM scratch\nCOPY --chmod=1 a /b/\n", "without flags"},
		{"a copy under another name", "FROM scratch\nCOPY a /b\n", "a folder like /bin/"},
		{"a value of nobody", "FROM scratch\nCOPY ${X}/a /b/\n", "no ARG line before it declares X"},
		{"a value without one", "FROM scratch\nARG X\nCOPY ${X}/a /b/\n", "no ARG line before it declares X, or it has no value"},
		{"a label without quotes", "FROM scratch\nLABEL a=b\n", `key="value"`},
		{"an entrypoint for a shell", "FROM scratch\nENTRYPOINT run\n", "ENTRYPOINT run: invalid character"},
		{"nothing to run", "FROM scratch\nCOPY a /\n", "there is no ENTRYPOINT"},
		{"a file that is not there", "FROM scratch\nCOPY b /\nENTRYPOINT [\"/b\"]\n", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(write(t, map[string]string{"Containerfile": tt.file}), "Containerfile")
			err := run([]string{"-o", filepath.Join(t.TempDir(), "x.tar"), "-file", file, "-context", context, "-arch", "amd64"}, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestNamesThatSayNothingAreRefused(t *testing.T) {
	for _, name := range []string{"ghcr.io/enipool/enipool", "ghcr.io/enipool/enipool:latest", "localhost:5000/enipool", "ghcr.io/enipool/enipool:"} {
		if _, err := build(t, small(t, "amd64"), "-arch", "amd64", "-name", name); err == nil || !strings.Contains(err.Error(), "must end in a tag") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// program builds one with the go command.
func program(t *testing.T, env ...string) []byte {
	t.Helper()
	dir := write(t, map[string]string{"main.go": "package main\nimport _ \"net\"\nfunc main() { println(\"it runs\") }\n", "go.mod": "module x\n"})
	out := filepath.Join(dir, "out")
	cmd := exec.Command("go", "build", "-o", out, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestProgramsThatWouldNotRunAreRefused(t *testing.T) {
	arm := program(t, "CGO_ENABLED=0", "GOARCH=arm64")
	if err := runs(arm, "arm64"); err != nil {
		t.Error(err)
	}
	if err := runs(arm, "amd64"); err == nil || !strings.Contains(err.Error(), "it is for EM_AARCH64; build it with GOARCH=amd64") {
		t.Errorf("another architecture: %v", err)
	}
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs a program with libraries: bash")
	}
	shell, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := runs(shell, "none"); err == nil || !strings.Contains(err.Error(), "it needs libraries") {
		t.Errorf("libraries: %v", err)
	}
}

// The image of the project with a program in each place, on a real containerd.
func TestContainerdRunsTheImage(t *testing.T) {
	kube.NeedNodes(t)
	static := program(t, "CGO_ENABLED=0")
	files := map[string]string{"LICENSE": "as is"}
	for _, name := range []string{"loopback", "portmap", "bandwidth", "enipool", "enipoolctl", "enipool-agent"} {
		files[runtime.GOARCH+"/"+name] = string(static)
	}
	out, err := build(t, write(t, files), "-arch", runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	n := kube.StartRuntime(t, kube.NodeOptions{Name: "n1"})
	n.Import(out)
	if said := n.Run("sh", "-c", "ctr --namespace=k8s.io run --rm ghcr.io/enipool/enipool:unreleased test 2>&1"); said != "it runs\n" {
		t.Errorf("%q", said)
	}
}
