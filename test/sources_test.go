package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

type source struct {
	pkg  string // below pkg/, like "cloud/sim"
	file string
	ast  *ast.File
	fset *token.FileSet
}

func (s source) top() string { return strings.Split(s.pkg, "/")[0] }

// lines returns how many lines a node takes.
func (s source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// sources parses the non-test files below pkg/.
func sources(t *testing.T) (list []source) {
	t.Helper()
	for _, s := range parsed(t, "../pkg") {
		if !strings.HasSuffix(s.file, "_test.go") {
			list = append(list, s)
		}
	}
	return list
}

// parsed parses all Go files below the folders, but for hidden folders. It reads them
// itself: a test that asks the go command stays green from the test cache when an import
// is added.
func parsed(t *testing.T, folders ...string) (list []source) {
	t.Helper()
	fset := token.NewFileSet()
	for _, folder := range folders {
		before := len(list)
		err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && name != folder && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
				return err
			}
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name = filepath.ToSlash(name)
			pkg := strings.TrimPrefix(strings.TrimPrefix(path.Dir(name), "../"), "pkg/")
			list = append(list, source{pkg, name, file, fset})
			return nil
		})
		if err != nil || len(list) == before {
			t.Fatalf("no sources found in %s: %v", folder, err)
		}
	}
	return list
}
