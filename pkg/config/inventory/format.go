package inventory

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// formatError says in the words of the file what the YAML parser says in Go's: which
// key, with which value, and what it must be, with the lines around it.
func formatError(err error) error {
	var (
		unknown *yaml.UnknownFieldError
		other   *yaml.TypeError
		shape   *yaml.UnexpectedNodeTypeError
	)
	switch {
	case errors.As(err, &unknown):
		key := unknown.Token.Value
		err = &yaml.SyntaxError{Token: unknown.Token, Message: key + ": must be removed or renamed: there is no such key" + meantKey(key)}
	case errors.As(err, &other):
		err = &yaml.SyntaxError{Token: other.Token, Message: valueName(other.Token) + ": must be " + typeName(other.DstType)}
	case errors.As(err, &shape) && shape.Expected == ast.SequenceType:
		err = &yaml.SyntaxError{Token: shape.Token, Message: valueName(shape.Token) + ": must be a list"}
	case errors.As(err, &shape) && shape.Expected == ast.MappingType:
		err = &yaml.SyntaxError{Token: shape.Token, Message: valueName(shape.Token) + ": must be a section with keys"}
	}
	return fmt.Errorf("read inventory: %s", yaml.FormatError(err, false, true))
}

// meantKey names the key that was likely meant.
func meantKey(text string) string {
	var keys []string
	for _, section := range []reflect.Type{reflect.TypeFor[rawInventory](), reflect.TypeFor[rawENI]()} {
		for i := range section.NumField() {
			keys = append(keys, section.Field(i).Tag.Get("yaml"))
		}
	}
	if key := config.Meant(text, keys); key != "" {
		return "; is " + key + " meant?"
	}
	return ""
}

// valueName is the value with its key, or alone where it stands in a list or is none.
func valueName(value *token.Token) string {
	name := fmt.Sprintf("%q", value.Value)
	switch value.Type {
	case token.SequenceStartType, token.SequenceEntryType:
		name = "a list"
	case token.MappingStartType:
		name = "a section"
	}
	if colon := value.Prev; colon != nil && colon.Type == token.MappingValueType && colon.Prev != nil {
		name = strings.TrimSpace(colon.Prev.Value) + ": " + name
	}
	return name
}

// typeName says what a key of this type takes.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "a whole number"
	case reflect.Bool, reflect.Pointer: // snat, which may be absent
		return "true or false"
	case reflect.Slice:
		return "a list"
	}
	return "a text"
}
