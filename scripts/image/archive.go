package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archive is an OCI archive in the making: its files by name.
type archive map[string][]byte

// add puts a blob in and describes it.
func (a archive) add(kind types.MediaType, text []byte) (v1.Descriptor, error) {
	hash, size, err := v1.SHA256(bytes.NewReader(text))
	if err != nil {
		return v1.Descriptor{}, err
	}
	a["blobs/"+hash.Algorithm+"/"+hash.Hex] = text
	return v1.Descriptor{MediaType: kind, Size: size, Digest: hash}, nil
}

func (a archive) addJSON(kind types.MediaType, value any) (v1.Descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return a.add(kind, text)
}

// image puts the image of one architecture in.
func (a archive) image(r recipe, context, arch string) (v1.Descriptor, error) {
	config := v1.ConfigFile{OS: "linux", Architecture: arch, Created: v1.Time{Time: never},
		Config: v1.Config{User: r.user, Entrypoint: r.entrypoint, Labels: r.labels}, RootFS: v1.RootFS{Type: "layers"}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	for _, c := range r.copies {
		files, err := c.layer(context, arch)
		if err != nil {
			return v1.Descriptor{}, err
		}
		plain, _, err := v1.SHA256(bytes.NewReader(files))
		if err != nil {
			return v1.Descriptor{}, err
		}
		packed, err := compress(files)
		if err != nil {
			return v1.Descriptor{}, err
		}
		layer, err := a.add(types.OCILayer, packed)
		if err != nil {
			return v1.Descriptor{}, err
		}
		manifest.Layers = append(manifest.Layers, layer)
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, plain)
		config.History = append(config.History, v1.History{Created: v1.Time{Time: never}, CreatedBy: c.line})
	}
	var err error
	if manifest.Config, err = a.addJSON(types.OCIConfigJSON, config); err != nil {
		return v1.Descriptor{}, err
	}
	d, err := a.addJSON(types.OCIManifestSchema1, manifest)
	d.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	return d, err
}

func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// name makes one image of those of several architectures and gives it its name. The
// first annotation is containerd's, the second one everybody's.
func (a archive) name(images []v1.Descriptor, name, tag string) error {
	all, err := a.addJSON(types.OCIImageIndex, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: images})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
	a["index.json"], err = json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{all}})
	a["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return err
}

// write writes the archive as a tar. Who reads an older one keeps it.
func (a archive) write(path string) error {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if err := put(w, name, 0o644, a[name]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", out.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}
