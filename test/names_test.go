package test

import (
	"go/ast"
	"go/token"
	"go/types"
	"testing"
)

// A name of the language that means something else for a few lines misleads who reads
// them, and whoever adds a line that uses it as it is meant.
func TestNoNameOfTheLanguageIsUsedForSomethingElse(t *testing.T) {
	for _, s := range parsed(t, "..") {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			for _, id := range declared(n) {
				if types.Universe.Lookup(id.Name) != nil {
					t.Errorf("%s: %s", s.fset.Position(id.Pos()), id.Name)
				}
			}
			return true
		})
	}
}

// shadowed finds the variables, parameters and results that have the name of a function
// of their package: there the function can't be called, and a reader takes one for the
// other.
func shadowed(p part) (found []finding) {
	functions := map[string]bool{}
	for _, s := range p.sources {
		for _, f := range functionsOf(s) {
			functions[f.Name.Name] = functions[f.Name.Name] || f.Recv == nil
		}
	}
	for _, s := range p.sources {
		for _, f := range functionsOf(s) {
			ast.Inspect(f, func(n ast.Node) bool {
				if n == f {
					return true // its own name is no shadow
				}
				for _, id := range declared(n) {
					if functions[id.Name] {
						found = append(found, s.at(id, "%s is a function too", id.Name))
					}
				}
				return true
			})
		}
	}
	return found
}

// declared returns the names that a node declares: variables, constants, parameters,
// results, receivers, types and functions. Methods and fields are used with a dot and
// mislead nobody.
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
	case *ast.TypeSpec:
		add(n.Name)
	case *ast.FuncDecl:
		if n.Recv == nil {
			add(n.Name)
		} else {
			names = namesOf(n.Recv)
		}
	case *ast.FuncType:
		names = append(namesOf(n.TypeParams), append(namesOf(n.Params), namesOf(n.Results)...)...)
	}
	return names
}

func namesOf(list *ast.FieldList) (names []*ast.Ident) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		names = append(names, field.Names...)
	}
	return names
}
