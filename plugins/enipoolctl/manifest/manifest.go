// Package manifest reads objects of Kubernetes from files: one after the other, and lists of them, as YAML or JSON.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Object is one, whose kind says how the rest of it is read.
type Object struct {
	APIVersion, Kind string
	Text             json.RawMessage // all of it
}

// Open returns what a file has, or stdin for -.
func Open(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}

// Read reads all objects there are.
func Read(from io.Reader) (all []Object, err error) {
	next := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		var text json.RawMessage
		if err := next.Decode(&text); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
			continue
		}
		list, err := Split(text)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
}

// Split returns the objects of a list, or the object that it is.
func Split(text []byte) (all []Object, err error) {
	var is struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, err
	}
	kind, list := strings.CutSuffix(is.Kind, "List")
	if !list {
		return []Object{{is.APIVersion, is.Kind, text}}, nil
	}
	for i, item := range is.Items {
		o := Object{Text: item}
		var own struct{ Kind, APIVersion string }
		if err := json.Unmarshal(item, &own); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		if o.APIVersion, o.Kind = own.APIVersion, own.Kind; o.Kind == "" { // the API server writes no kind into what a list of one kind has
			o.APIVersion, o.Kind = is.APIVersion, kind
		}
		all = append(all, o)
	}
	return all, nil
}
