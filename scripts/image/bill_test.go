package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func readBill(t *testing.T, path string) spdxDocument {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d spdxDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The SBOM names the image by its digest, each file with its checksum and the modules of each program.
func TestTheSBOMSaysWhatTheImageIsMadeOf(t *testing.T) {
	static := program(t, "CGO_ENABLED=0")
	files := map[string]string{"LICENSE": "as is"}
	for _, name := range []string{"loopback", "portmap", "bandwidth", "enipool", "enipoolctl", "enipool-agent"} {
		files[runtime.GOARCH+"/"+name] = string(static)
	}
	out, err := build(t, write(t, files), "-arch", runtime.GOARCH, "-name", "registry.local:5000/enipool:1a2b3c4", "-version", "v1.2.3", "-created", "2026-01-31T12:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	d := readBill(t, strings.TrimSuffix(out, ".tar")+".spdx.json")
	digest := manifests(t, open(t, out))[0].Digest
	if top := d.Packages[0]; top.Name != "registry.local:5000/enipool:1a2b3c4" || top.Version != "v1.2.3" || top.Checksums[0].Value != digest.Hex ||
		top.Refs[0].Locator != "pkg:oci/enipool@sha256%3A"+digest.Hex+"?repository_url=registry.local:5000/enipool&tag=1a2b3c4" {
		t.Errorf("%+v", top)
	}
	if d.SPDX != "SPDX-2.3" || d.Creation.Created != "2026-01-31T12:00:00Z" || !strings.HasSuffix(d.Namespace, "/enipool/"+digest.Hex) {
		t.Errorf("%+v", d)
	}
	sum := sha256.Sum256(static)
	programs := 0
	for _, f := range d.Files {
		if f.Name == "./"+runtime.GOARCH+"/bin/enipool-agent" {
			programs++
			if f.Checksums[0].Algorithm != "SHA1" || f.Checksums[1] != (spdxChecksum{"SHA256", hex.EncodeToString(sum[:])}) {
				t.Errorf("%+v", f)
			}
		}
	}
	if programs != 1 || len(d.Files) != 7 {
		t.Errorf("%d files", len(d.Files))
	}
	linked := map[string]bool{}
	for _, p := range d.Packages {
		linked[p.Name+" "+p.Version] = true
	}
	if want := "stdlib " + strings.TrimPrefix(runtime.Version(), "go"); !linked[want] || !linked["x v1.2.3"] {
		t.Errorf("%v, want %s and x, which is the program's own", linked, want)
	}
	hasOnlyKnownEnds(t, d)
}

// hasOnlyKnownEnds wants each ID once and as SPDX has it, and each relationship between two of them.
func hasOnlyKnownEnds(t *testing.T, d spdxDocument) {
	t.Helper()
	known := map[string]bool{d.ID: true}
	add := func(id string) {
		if known[id] || !regexp.MustCompile(`^SPDXRef-[0-9A-Za-z.-]+$`).MatchString(id) {
			t.Errorf("ID %s", id)
		}
		known[id] = true
	}
	for _, p := range d.Packages {
		add(p.ID)
	}
	for _, f := range d.Files {
		add(f.ID)
	}
	related := map[string]bool{}
	for _, r := range d.Relations {
		if !known[r.From] || !known[r.To] {
			t.Errorf("%+v: unknown", r)
		}
		related[r.To] = true
	}
	for id := range known {
		if id != d.ID && !related[id] {
			t.Errorf("%s belongs to nothing", id)
		}
	}
	if _, err := time.Parse(time.RFC3339, d.Creation.Created); err != nil {
		t.Error(err)
	}
}

// A program of which nobody knows what is in it is no part of an image.
func TestAProgramWithoutBuildInformationIsRefused(t *testing.T) {
	b := bill{}
	text := []byte("\x7fELF and then nothing")
	if err := b.link(spdxFile{}, text); err == nil {
		t.Error("it was taken")
	}
}

// Two builds of the same commit, in two folders, make the same images and SBOMs, bit by bit.
func TestTwoBuildsMakeTheSameImages(t *testing.T) {
	if testing.Short() {
		t.Skip("links every program twice")
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "another", "place")
	for _, name := range []string{"plugins", "pkg", "conf", "scripts", "test"} {
		if err := os.CopyFS(filepath.Join(there, name), os.DirFS(filepath.Join(here, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE"} {
		text, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(there, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var sums []map[string]string
	for _, root := range []string{here, there} {
		folder := t.TempDir()
		cmd := exec.Command("scripts/image/build.sh", "1a2b3c4", filepath.Join(folder, "image"), runtime.GOARCH)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "REVISION=1a2b3c4d", "CREATED=2026-01-31T12:00:00Z")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		all := map[string]string{}
		for _, name := range []string{"enipool-image.tar", "enipool-image.spdx.json", "enipool-operator-image.tar", "enipool-operator-image.spdx.json"} {
			f, err := os.Open(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.New()
			if _, err := io.Copy(h, f); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			all[name] = hex.EncodeToString(h.Sum(nil))
		}
		sums = append(sums, all)
		labels(t, folder)
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("(-here +there):\n%s", diff)
	}
}

// labels wants both images to say which commit they are of, and to be tagged by it.
func labels(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{"enipool", "enipool-operator"} {
		top := open(t, filepath.Join(folder, name+"-image.tar"))
		named := manifests(t, top)[0]
		if got := named.Annotations["io.containerd.image.name"]; got != "docker.io/enipool/"+name+":1a2b3c4" {
			t.Errorf("its name is %s", got)
		}
		all, err := top.ImageIndex(named.Digest)
		if err != nil {
			t.Fatal(err)
		}
		image, err := all.Image(manifests(t, all)[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if l := config.Config.Labels; l["org.opencontainers.image.revision"] != "1a2b3c4d" || l["org.opencontainers.image.version"] != "1a2b3c4" {
			t.Errorf("%v", l)
		}
		hasOnlyKnownEnds(t, readBill(t, filepath.Join(folder, name+"-image.spdx.json")))
	}
}
