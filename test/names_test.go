package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A name of the language that means something else for a few lines misleads who reads
// them, and whoever adds a line that uses it as it is meant.
func TestNoNameOfTheLanguageIsUsedForSomethingElse(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && name != ".." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, id := range declared(n) {
				if types.Universe.Lookup(id.Name) != nil {
					t.Errorf("%s: %s", fset.Position(id.Pos()), id.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// declared returns the names that a node declares: variables, constants, parameters,
// results and functions. Methods and fields are used with a dot and mislead nobody.
func declared(n ast.Node) (names []*ast.Ident) {
	add := func(list ...ast.Expr) {
		for _, e := range list {
			if id, ok := e.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			add(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			add(n.Key, n.Value)
		}
	case *ast.ValueSpec:
		names = n.Names
	case *ast.FuncDecl:
		if n.Recv == nil {
			add(n.Name)
		}
	case *ast.FuncType:
		for _, list := range []*ast.FieldList{n.Params, n.Results} {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				names = append(names, field.Names...)
			}
		}
	}
	return names
}
