package test

import (
	"go/ast"
	"strings"
)

// farLetter is for how many lines a variable may be a letter: its declaration is then
// still near.
const farLetter = 10

// farLetters finds the variables, parameters and results of one letter that are used more
// than farLetter lines below their declaration. Receivers are known by their method, and
// testing's t is known by everybody.
func farLetters(p part) (found []finding, of int) {
	for _, s := range p.sources {
		for _, f := range functionsOf(s) {
			all := lettersIn(s, f)
			of += all.of
			found = append(found, all.far...)
		}
	}
	return found, of
}

type letters struct {
	of  int
	far []finding
}

func lettersIn(s source, f *ast.FuncDecl) (all letters) {
	var scopes []ast.Node
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			scopes = scopes[:len(scopes)-1]
			return true
		}
		// What a statement declares is known to the node around it, and what an if or a for
		// declares to itself alone.
		scopes = append(scopes, n)
		if n == f {
			return true
		}
		for _, id := range declared(n) {
			if id.Name == "_" || id.Name == "t" && strings.HasSuffix(s.pkg, "test") {
				continue
			}
			all.of++
			if lived := usedFor(s, scopeOf(scopes), id); len(id.Name) == 1 && lived > farLetter {
				all.far = append(all.far, s.at(id, "%s is used %d lines below", id.Name, lived))
			}
		}
		return true
	})
	return all
}

// scopeOf returns the innermost node that ends the life of what the last node declares.
func scopeOf(nodes []ast.Node) ast.Node {
	for i := len(nodes) - 1; i > 0; i-- {
		switch nodes[i].(type) {
		case *ast.BlockStmt, *ast.FuncLit, *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt,
			*ast.CaseClause, *ast.CommClause:
			return nodes[i]
		}
	}
	return nodes[0]
}

// usedFor returns how many lines below its declaration a variable is used last.
func usedFor(s source, scope ast.Node, id *ast.Ident) int {
	last := id.Pos()
	ast.Inspect(scope, func(n ast.Node) bool {
		if other, is := n.(*ast.Ident); is && other.Name == id.Name && other.Pos() > last {
			last = other.Pos()
		}
		return true
	})
	return s.fset.Position(last).Line - s.fset.Position(id.Pos()).Line
}
