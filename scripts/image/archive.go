package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// image makes the image of one architecture.
func (r recipe) image(context, arch string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, c := range r.copies {
		files, err := c.layer(context, arch)
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: never}, CreatedBy: c.line}})
	}
	base, err := mutate.ConfigFile(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		&v1.ConfigFile{OS: "linux", Architecture: arch, Created: v1.Time{Time: never}, RootFS: v1.RootFS{Type: "layers"},
			Config: v1.Config{User: r.user, Entrypoint: r.entrypoint, Labels: r.labels}})
	if err != nil {
		return nil, err
	}
	return mutate.Append(base, layers...)
}

// writeArchive writes the images of several architectures, which are one by its name, as
// an OCI archive. Who reads an older one at that path keeps it.
func writeArchive(file string, images v1.ImageIndex, name, tag string) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// The first annotation is containerd's, the second one everybody's.
	if err := top.AppendIndex(images, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag})); err != nil {
		return err
	}
	packed, err := packFolder(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".part", packed, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

// packFolder returns a tar of the files below a folder.
func packFolder(dir string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	below := os.DirFS(dir)
	err := fs.WalkDir(below, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(below, name)
		if err != nil {
			return err
		}
		return put(w, name, 0o644, text)
	})
	err = errors.Join(err, w.Close()) // which writes the end
	return out.Bytes(), err
}
