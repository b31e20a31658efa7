package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
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
