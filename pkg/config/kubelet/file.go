package kubelet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
)

// readFile reads a file by the name that the kubelet has for it.
func (k process) readFile(name string) (last said, err error) {
	for _, path := range k.paths(name) {
		var text []byte
		if text, err = os.ReadFile(path); err == nil {
			return parseFile(name, text)
		}
	}
	return said{}, fmt.Errorf("read kubelet's configuration: %w", err)
}

// readDropins reads the files *.conf of a folder, and of those below it, in
// lexical order; the last one that speaks of pods counts.
func (k process) readDropins(name string) (last said, err error) {
	for _, dir := range k.paths(name) {
		if _, err = os.Stat(dir); err != nil {
			continue
		}
		var errs []error
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".conf" {
				return err
			}
			shown := filepath.Join(name, path[len(dir):])
			text, err := os.ReadFile(path)
			if err == nil {
				var one said
				if one, err = parseFile(shown, text); one.source != "" {
					last = one
				}
			}
			errs = append(errs, err)
			return nil
		})
		return last, errors.Join(append(errs, err)...)
	}
	return said{}, fmt.Errorf("read kubelet's drop-ins: %w", err)
}

// parseFile reads maxPods from a KubeletConfiguration, YAML or JSON, which may have none. It
// ignores all other keys: the file is the kubelet's.
func parseFile(name string, text []byte) (said, error) {
	var file struct {
		MaxPods *int32 `json:"maxPods" yaml:"maxPods"`
	}
	// JSON may be indented with tabs, which YAML does not take.
	if err := json.Unmarshal(text, &file); err != nil {
		if err := yaml.NewDecoder(bytes.NewReader(text), yaml.AllowDuplicateMapKey()).Decode(&file); err != nil && err != io.EOF {
			return said{}, fmt.Errorf("read kubelet's configuration %s: %s", name, yaml.FormatError(err, false, false))
		}
	}
	if file.MaxPods == nil {
		return said{}, nil
	}
	return said{int(*file.MaxPods), name}, nil
}
