package test

import (
	"go/ast"
	"strings"
)

// functionsOf returns the functions and methods of a file.
func functionsOf(s source) (list []*ast.FuncDecl) {
	for _, d := range s.ast.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
			list = append(list, f)
		}
	}
	return list
}

// oneWordFunctions finds the unexported functions whose name is one word: "leave" does
// not say what leaves. Exported ones are read with their package's name before them, which
// completes them.
func oneWordFunctions(p part) (found []finding, of int) {
	return oneWord(p, func(f *ast.FuncDecl) bool { return f.Recv == nil })
}

// oneWordMethods does that for methods. Here one word is often enough, since the receiver
// completes it, as in cache.view and plan.slots: hence a limit of their own.
func oneWordMethods(p part) (found []finding, of int) {
	return oneWord(p, func(f *ast.FuncDecl) bool { return f.Recv != nil })
}

func oneWord(p part, counts func(*ast.FuncDecl) bool) (found []finding, of int) {
	for _, s := range p.sources {
		for _, f := range functionsOf(s) {
			name := f.Name.Name
			if f.Name.IsExported() || !counts(f) || name == "main" || name == "init" || name == "_" {
				continue
			}
			if of++; name == strings.ToLower(name) && !strings.Contains(name, "_") {
				found = append(found, s.at(f, "func %s", name))
			}
		}
	}
	return found, of
}

// longFunction is from how many lines on a function has something to explain.
const longFunction = 20

// silentFunctions finds the long functions without a comment inside: nowhere do they say
// what would break without a line, which cloud needs it or which measurement showed it.
func silentFunctions(p part) (found []finding, of int) {
	for _, s := range p.sources {
		for _, f := range functionsOf(s) {
			if s.lines(f) < longFunction {
				continue
			}
			of++
			if !commented(s, f.Body) {
				found = append(found, s.at(f, "func %s has %d lines", f.Name.Name, s.lines(f)))
			}
		}
	}
	return found, of
}

func commented(s source, body *ast.BlockStmt) bool {
	for _, c := range s.ast.Comments {
		if c.Pos() > body.Lbrace && c.End() <= body.Rbrace {
			return true
		}
	}
	return false
}
