package keys

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// linesOfKeys returns the line of each key of the file by its full name. It parses the file a
// second time, so it is only called for files with errors.
func linesOfKeys(text []byte) map[string]int {
	at := map[string]int{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return at
	}
	for _, entry := range entriesOf(file.Docs[0].Body) {
		name := entry.Key.GetToken().Value
		at[name] = entry.Key.GetToken().Position.Line
		for _, sub := range entriesOf(entry.Value) {
			at[name+"."+sub.Key.GetToken().Value] = sub.Key.GetToken().Position.Line
		}
	}
	return at
}

// entriesOf are the keys of a section with their values, none where it is something else.
func entriesOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode: // a section of one key
		return []*ast.MappingValueNode{n}
	case *ast.AnchorNode:
		return entriesOf(n.Value)
	case *ast.TagNode:
		return entriesOf(n.Value)
	}
	return nil
}
