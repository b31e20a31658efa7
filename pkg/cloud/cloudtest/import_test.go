package cloudtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyTestsImportTheSuites(t *testing.T) {
	seen := 0
	for _, root := range []string{"../../../pkg", "../../../plugins"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			seen++
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range f.Imports {
				if strings.HasSuffix(i.Path.Value, `/pkg/cloud/cloudtest"`) || strings.HasSuffix(i.Path.Value, `/pkg/cloud/drivertest"`) {
					t.Errorf("%s imports %s, and with it the testing package", name, i.Path.Value)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("no source was found")
	}
}
