package kube

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A container without arguments has those of its image, and one with arguments keeps the image's command.
func TestAnImageHasACommandAndArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	image := Image{Ref: "localhost/some:1", Links: map[string]string{"/bin/sh": "bash"}, Command: []string{"/agnhost"}, Default: []string{"pause"}}
	if err := image.Write(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type config struct{ Entrypoint, Cmd []string }
	var found []config
	for archive := tar.NewReader(f); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var blob struct {
			OS     string
			Config config
		}
		if strings.HasPrefix(h.Name, "blobs/") && json.NewDecoder(archive).Decode(&blob) == nil && blob.OS == "linux" {
			found = append(found, blob.Config)
		}
	}
	if diff := cmp.Diff([]config{{[]string{"/agnhost"}, []string{"pause"}}}, found); diff != "" {
		t.Error(diff)
	}
}
