package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copyOfTheTree is what a release is built from, in another place and without git.
func copyOfTheTree(t *testing.T, here string) string {
	t.Helper()
	there := filepath.Join(t.TempDir(), "another", "place")
	for _, name := range []string{"plugins", "pkg", "conf", "scripts", "test"} {
		if err := os.CopyFS(filepath.Join(there, name), os.DirFS(filepath.Join(here, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "LICENSE", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(there, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return there
}

// gather makes a release of the tree for this machine's architecture, and returns its folder.
func gather(t *testing.T, root, release string) (folder, said string, err error) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "release")
	cmd := exec.Command("scripts/release.sh", release, folder, runtime.GOARCH)
	// TAG is that of make image; the images of a release have its own name whatever it is.
	cmd.Dir, cmd.Env = root, append(os.Environ(), "REVISION=1a2b3c4d", "CREATED=2026-01-31T12:00:00Z", "TAG=mine")
	out, err := cmd.CombinedOutput()
	return folder, string(out), err
}

// sumsOf are the SHA-256 of a folder's files by name.
func sumsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		all[e.Name()] = hex.EncodeToString(sum[:])
	}
	return all
}

// Two releases of the same commit, in two folders, are the same files, bit by bit, and what SHA256SUMS says of them is so.
func TestTwoReleasesOfACommitAreTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("links every program twice")
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var sums []map[string]string
	for _, root := range []string{here, copyOfTheTree(t, here)} {
		folder, said, err := gather(t, root, "1a2b3c4")
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		sums = append(sums, sumsOf(t, folder))
		if len(sums) == 1 {
			holdsWhatIsPublished(t, folder, sums[0])
		}
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Errorf("(-here +there):\n%s", diff)
	}
}

// holdsWhatIsPublished looks at each file of a release.
func holdsWhatIsPublished(t *testing.T, folder string, sums map[string]string) {
	t.Helper()
	archive := "enipool-linux-" + runtime.GOARCH + ".tar.gz"
	want := ""
	for _, name := range []string{"enipool-chart.tgz", "enipool-image.spdx.json", "enipool-image.tar", archive, "enipool-operator-image.spdx.json", "enipool-operator-image.tar"} {
		want += sums[name] + "  " + name + "\n" // as sha256sum --check reads it
	}
	got, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" || len(sums) != 7 {
		t.Errorf("%d files, %v (-of the files +SHA256SUMS):\n%s", len(sums), err, diff)
	}
	labels(t, folder)
	hasThePrograms(t, folder, archive)
	notes, err := os.ReadFile(folder + "-notes.md")
	text := string(notes)
	if err != nil || strings.Contains(text, "\n## ") || strings.Contains(text, "### Changes") || len(strings.Fields(text)) < 100 || len(strings.Fields(text)) > 800 {
		t.Errorf("notes, of %d words: %v\n%s", len(strings.Fields(text)), err, text)
	}
	if links, whole := strings.Count(text, "]("), strings.Count(text, "](https://github.com/enipool/enipool/blob/1a2b3c4/"); links < 5 || whole != links {
		t.Errorf("%d of %d links of the notes lead into the repository", whole, links)
	}
	for name := range sums { // the notes name each file
		if name = strings.ReplaceAll(name, runtime.GOARCH, "amd64"); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the notes don't name %s", name)
		}
	}
}

// hasThePrograms looks into the archive of one architecture. The programs are those of the images, so that the SBOMs of these are theirs.
func hasThePrograms(t *testing.T, folder, archive string) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(folder, archive))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files, seen := untar(t, z)
	if diff := cmp.Diff([]string{
		"enipool/ 755 0:0 1970-01-01",
		"enipool/10-enipool-chain.conflist 644 0:0 1970-01-01",
		"enipool/10-enipool-ipam.conflist 644 0:0 1970-01-01",
		"enipool/10-enipool.conflist 644 0:0 1970-01-01",
		"enipool/LICENSE 644 0:0 1970-01-01",
		"enipool/agent.yaml 644 0:0 1970-01-01",
		"enipool/enipool 755 0:0 1970-01-01",
		"enipool/enipool-agent 755 0:0 1970-01-01",
		"enipool/enipool-operator 755 0:0 1970-01-01",
		"enipool/enipoolctl 755 0:0 1970-01-01",
	}, seen); diff != "" {
		t.Errorf("%s (-want +got):\n%s", archive, diff)
	}
	billed := map[string]bool{}
	for _, name := range []string{"enipool", "enipool-operator"} {
		for _, f := range readBill(t, filepath.Join(folder, name+"-image.spdx.json")).Files {
			billed[filepath.Base(f.Name)+" "+f.Checksums[1].Value] = true
		}
	}
	for _, name := range []string{"enipool", "enipool-agent", "enipool-operator", "enipoolctl"} {
		sum := sha256.Sum256(files["enipool/"+name])
		if !billed[name+" "+hex.EncodeToString(sum[:])] {
			t.Errorf("%s is in no SBOM", name)
		}
	}
	program := filepath.Join(t.TempDir(), "enipoolctl")
	if err := os.WriteFile(program, files["enipool/enipoolctl"], 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(program, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(said), "enipoolctl 1a2b3c4 ") {
		t.Errorf("version: %v\n%s", err, said)
	}
}

// Who reads CHANGELOG.md and the manifests of a tag finds that tag there: its commit says so before anything is built.
func TestATagWhoseCommitHasAnotherNameIsRefused(t *testing.T) {
	folder, said, err := gather(t, "../..", "v987.6.5")
	if err == nil || !strings.Contains(said, "the commit of the tag must have v987.6.5 there") {
		t.Errorf("%v\n%s", err, said)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("there is a release: %v", err)
	}
}

// Keys of a release say that they came with it: who goes back to an older one takes them out of the file.
func TestATagWhoseKeysAreMarkedAsUnreleasedIsRefused(t *testing.T) {
	root := copyOfTheTree(t, "../..")
	change := func(name, from, to string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(text), from) {
			t.Fatalf("%s does not have %q: %v", name, from, err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(strings.ReplaceAll(string(text), from, to)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	heading := regexp.MustCompile(`(?m)^## \S+`)
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	change("CHANGELOG.md", heading.FindString(string(log)), "## v987.6.5")
	change("scripts/image/build.sh", "set -euo pipefail", "echo the images would be built; exit 1") // minutes
	const mark = `"x-since": "unreleased"`
	for _, name := range []string{"conf/agent.schema.json", "conf/helm/enipool/values.schema.json", "conf/operator.schema.json"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), mark) { // none is new at the moment
			change(name, `"x-since": "`, mark+`, "x-was": "`)
		}
		if _, said, err := gather(t, root, "v987.6.5"); err == nil || !strings.Contains(said, "keys are marked as unreleased in ") || !strings.Contains(said, name) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		change(name, mark, `"x-since": "v987.6.5"`)
	}
	if _, said, _ := gather(t, root, "v987.6.5"); !strings.Contains(said, "the images would be built") {
		t.Errorf("a release is refused: %s", said)
	}
}

// labels wants both images to say which commit they are of, and to be tagged by it.
func labels(t *testing.T, folder string) {
	t.Helper()
	for _, name := range []string{"enipool", "enipool-operator"} {
		top := open(t, filepath.Join(folder, name+"-image.tar"))
		named := manifests(t, top)[0]
		if got := named.Annotations["io.containerd.image.name"]; got != "ghcr.io/enipool/"+name+":1a2b3c4" {
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
