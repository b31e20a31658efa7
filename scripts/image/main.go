// Command image builds the container image that conf/image/Containerfile describes,
// as an OCI archive, without a registry and without a builder:
//
//	go run ./scripts/image -context .build/image -o .build/enipool-image.tar
//	ctr --namespace k8s.io images import .build/enipool-image.tar
//
// The same files make the same archive, bit by bit. Beside it, as .build/enipool-image.spdx.json,
// lies what it is made of, in SPDX 2.3: its programs and the Go modules that they link. build.sh
// beside this file builds the files first.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "image:", err)
	os.Exit(1)
}

func run(args []string, stdout io.Writer) error {
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	out := f.String("o", ".build/enipool-image.tar", "the OCI archive to write")
	file := f.String("file", "conf/image/Containerfile", "what the image is like")
	context := f.String("context", ".build/image", "the folder that it copies from")
	archs := f.String("arch", "amd64,arm64", "the architectures, by their Go names")
	name := f.String("name", "ghcr.io/enipool/enipool:unreleased", "the image's whole name")
	version := f.String("version", "unreleased", "the value of the argument VERSION")
	revision := f.String("revision", "unknown", "the value of the argument REVISION: the commit that it is of")
	created := f.String("created", "1970-01-01T00:00:00Z", "when what it is made of was written, for its SBOM; the time of the build would make each another one")
	if err := f.Parse(args); err != nil {
		return err
	}
	_, tag, _ := strings.Cut(path.Base(*name), ":")
	if tag == "" || tag == "latest" {
		return fmt.Errorf("-name %s: must end in a tag, and not in latest", *name)
	}
	text, err := os.ReadFile(*file)
	if err != nil {
		return err
	}
	made := bill{name: *name, version: *version, created: *created}
	images := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	list := slices.Compact(slices.Sorted(strings.SplitSeq(*archs, ",")))
	for _, arch := range list {
		r, err := readRecipe(string(text), map[string]string{"TARGETARCH": arch, "VERSION": *version, "REVISION": *revision})
		if err != nil {
			return fmt.Errorf("%s: %w", *file, err)
		}
		one, err := r.image(*context, arch)
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		if err := made.add(r, one, *context, arch); err != nil {
			return fmt.Errorf("SBOM of the image for %s: %w", arch, err)
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	if err := writeArchive(*out, images, *name, tag); err != nil {
		return err
	}
	digest, err := images.Digest()
	if err != nil {
		return err
	}
	if err := made.write(strings.TrimSuffix(*out, ".tar")+".spdx.json", digest); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "built %s for %s: %s\n%s@%s\n", *name, strings.Join(list, " and "), *out, *name, digest)
	return nil
}
