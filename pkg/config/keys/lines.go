package keys

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// typed is how a key stands in the file.
type typed struct {
	line   int
	number string // its value as it is typed, if that is a number: the decoder keeps of 0x1ff what it amounts to
}

func typedAs(entry *ast.MappingValueNode) typed {
	t := typed{line: entry.Key.GetToken().Position.Line}
	switch n := entry.Value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		t.number = n.GetToken().Value
	}
	return t
}

// typedKeys returns how each key of the file stands there, by its full name. It parses the file a
// second time, so it is only called for files with errors.
func typedKeys(text []byte) map[string]typed {
	at := map[string]typed{}
	file, err := parser.ParseBytes(text, 0)
	if err != nil || len(file.Docs) == 0 {
		return at
	}
	for _, entry := range entriesOf(file.Docs[0].Body) {
		name := entry.Key.GetToken().Value
		at[name] = typedAs(entry)
		for _, sub := range entriesOf(entry.Value) {
			at[name+"."+sub.Key.GetToken().Value] = typedAs(sub)
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
