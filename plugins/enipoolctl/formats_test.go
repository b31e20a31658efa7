package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All that commands print for programs goes through one function, which begins it with the version of its format.
func TestNoCommandPrintsJSONByItself(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "cli/") || strings.Contains(path, "clustertest") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, by := range []string{"json.NewEncoder(", "json.MarshalIndent("} {
			if strings.Contains(string(text), by) {
				t.Errorf("%s: %s; cli.PrintAs writes it", path, by)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
