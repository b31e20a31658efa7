package kube

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

// Image is a container image of one layer, made without a registry.
type Image struct {
	Ref     string
	Files   map[string]string // path in the image to the file here
	Links   map[string]string // path in the image to what it says
	Command []string
	Default []string // arguments of the command where a container has none
}

// blob is a part of an OCI archive.
type blob struct {
	MediaType   string            `json:"mediaType,omitempty"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`

	text []byte
}

func newBlob(kind string, text []byte) blob {
	return blob{MediaType: "application/vnd.oci.image." + kind, Size: len(text), text: text,
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(text))}
}

// jsonBlob is newBlob of a value that always has a JSON.
func jsonBlob(kind string, value any) blob {
	text, _ := json.Marshal(value)
	return newBlob(kind, text)
}

// Write writes the image as an OCI archive, as Node.Import and NodeOptions.Images
// take it.
func (i Image) Write(path string) error {
	files, err := i.layer()
	if err != nil {
		return fmt.Errorf("write image %s: %w", i.Ref, err)
	}
	type object map[string]any
	layer := newBlob("layer.v1.tar", files)
	config := jsonBlob("config.v1+json", object{"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": i.Command, "Cmd": i.Default, "Env": []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []string{layer.Digest}}})
	manifest := jsonBlob("manifest.v1+json", object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []blob{layer}})
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.Ref}
	index := jsonBlob("index.v1+json", object{"schemaVersion": 2, "manifests": []blob{manifest}})
	archive := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": index.text}
	for _, b := range []blob{layer, config, manifest} {
		archive["blobs/sha256/"+strings.TrimPrefix(b.Digest, "sha256:")] = b.text
	}
	text, err := pack(archive, nil)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// layer is the image's file system.
func (i Image) layer() ([]byte, error) {
	files := map[string][]byte{}
	for name, from := range i.Files {
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(name, "/")] = text
	}
	return pack(files, i.Links)
}

// pack makes a tar of programs and links.
func pack(files map[string][]byte, links map[string]string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		h := &tar.Header{Typeflag: tar.TypeSymlink, Name: strings.TrimPrefix(name, "/"), Linkname: links[name], Mode: 0o777}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
