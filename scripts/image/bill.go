package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// bill gathers what images of several architectures are made of.
type bill struct {
	name, version, created string // of the image: its whole name, the release of its programs, in RFC 3339
	images                 []spdxPackage
	modules                map[string]spdxPackage // by ID: several programs link the same ones
	files                  []spdxFile
	relations              []spdxRelation
}

// add takes the image of one architecture in, with the files that its recipe copies.
func (b *bill) add(r recipe, image v1.Image, context, arch string) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	one := spdxPackage{ID: spdxID("image", arch), Name: b.name + " for " + arch, Version: b.version, Download: noAssertion,
		Checksums: []spdxChecksum{{"SHA256", digest.Hex}}}
	b.images = append(b.images, one)
	b.relate(topImage, "CONTAINS", one.ID)
	for _, c := range r.copies {
		for _, from := range c.from {
			text, err := os.ReadFile(filepath.Join(context, from))
			if err != nil {
				return err
			}
			file := spdxFile{ID: spdxID("file", arch, path.Base(from)), Name: "./" + arch + path.Join(c.to, path.Base(from)), Checksums: checksums(text)}
			b.files = append(b.files, file)
			b.relate(one.ID, "CONTAINS", file.ID)
			if err := b.link(file, text); err != nil {
				return fmt.Errorf("%s: %w", from, err)
			}
		}
	}
	return nil
}

// link takes in the modules that a program has in it; other files have none.
func (b *bill) link(file spdxFile, text []byte) error {
	if !bytes.HasPrefix(text, []byte(elf.ELFMAG)) {
		return nil
	}
	info, err := buildinfo.Read(bytes.NewReader(text))
	if err != nil {
		return err // what is in it nobody knows then
	}
	modules := []spdxPackage{b.module(info.Main), goModule("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, b.module(*m))
	}
	for _, m := range modules {
		if b.modules == nil {
			b.modules = map[string]spdxPackage{}
		}
		b.modules[m.ID] = m
		b.relate(file.ID, "STATIC_LINK", m.ID)
	}
	return nil
}

// module is one that a program links; our own has the release as its version, since Go knows none.
func (b *bill) module(m debug.Module) spdxPackage {
	if m.Version == "" || m.Version == "(devel)" {
		m.Version = b.version
	}
	return goModule(m.Path, m.Version, m.Sum)
}

func (b *bill) relate(from, how, to string) {
	b.relations = append(b.relations, spdxRelation{from, how, to})
}

// write writes the document of the images with the digest of all of them.
func (b *bill) write(file string, digest v1.Hash) error {
	at := strings.LastIndex(b.name, ":") // a registry may have a port before it
	repository, tag := b.name[:at], b.name[at+1:]
	top := spdxPackage{ID: topImage, Name: b.name, Version: b.version, Download: noAssertion, Checksums: []spdxChecksum{{"SHA256", digest.Hex}},
		Refs: purl(fmt.Sprintf("pkg:oci/%s@sha256%%3A%s?repository_url=%s&tag=%s", path.Base(repository), digest.Hex, repository, tag))}
	d := spdxDocument{SPDX: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: b.name,
		Namespace: "https://github.com/enipool/enipool/spdx/" + path.Base(repository) + "/" + digest.Hex,
		Creation:  spdxCreation{Created: b.created, Creators: []string{"Tool: enipool-scripts-image"}},
		Packages:  append([]spdxPackage{top}, b.images...), Files: b.files,
		Relations: append([]spdxRelation{{document, "DESCRIBES", topImage}}, b.relations...)}
	for _, m := range b.modules {
		d.Packages = append(d.Packages, m)
	}
	slices.SortFunc(d.Packages[1+len(b.images):], func(a, b spdxPackage) int { return strings.Compare(a.ID, b.ID) })
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(d); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// spdxID makes an ID of parts, of the letters that one may have.
func spdxID(parts ...string) string {
	return "SPDXRef-" + regexp.MustCompile(`[^0-9A-Za-z.-]+`).ReplaceAllString(strings.Join(parts, "-"), "-")
}

// checksums are those of a file; SPDX wants the first of every one.
func checksums(text []byte) []spdxChecksum {
	short, long := sha1.Sum(text), sha256.Sum256(text)
	return []spdxChecksum{{"SHA1", hex.EncodeToString(short[:])}, {"SHA256", hex.EncodeToString(long[:])}}
}
