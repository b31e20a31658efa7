package page

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Trusted is text of the program itself, such as a stylesheet: a page has it as it is.
type Trusted string

// Template is a page with places for values, in the words of html/template that pages here need: a path of fields as in {{.Node.Name}},
// {{or .Node "none"}}, {{len .Pods}}, and {{if}}, {{with}} and {{range}} with {{else}}, of those and of {{gt .Share 1}}. A value is escaped for text and
// for attributes in double quotes, and may stand nowhere else unless it is Trusted. Of a link it must be the address: nobody looks
// at its scheme.
//
// html/template would find methods by their names. So the linker keeps each exported method of each type in a program that has it,
// and an agent with the clients of its clouds had 10 MB more, of which 7 MB were in memory.
type Template struct{ parts []part }

// part writes one part of a page about dot.
type part func(out *bytes.Buffer, dot reflect.Value) error

// value is what a part shows or looks at.
type value func(dot reflect.Value) (reflect.Value, error)

// MustParse returns the template that a text of the program is, and panics if it is none.
func MustParse(text string) Template {
	p := parser{text}
	parts, end, err := p.parseParts()
	if err == nil && end != "" {
		err = fmt.Errorf("{{%s}} of nothing", end)
	}
	if err != nil {
		panic(fmt.Sprintf("parse the page: %v", err))
	}
	return Template{parts}
}

// Execute writes the page about data. It writes nothing if data lacks what the page names.
func (t Template) Execute(w io.Writer, data any) error {
	var out bytes.Buffer
	if err := writeParts(&out, t.parts, reflect.ValueOf(data)); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func writeParts(out *bytes.Buffer, parts []part, dot reflect.Value) error {
	for _, p := range parts {
		if err := p(out, dot); err != nil {
			return err
		}
	}
	return nil
}

// parser has what of a page is still to be parsed.
type parser struct{ rest string }

// parseParts parses up to the end or to the {{end}} or {{else}} of a block around it, which it returns.
func (p *parser) parseParts() (parts []part, end string, err error) {
	for {
		text, rest, found := strings.Cut(p.rest, "{{")
		parts = append(parts, func(out *bytes.Buffer, _ reflect.Value) error { out.WriteString(text); return nil })
		if p.rest = ""; !found {
			return parts, "", nil
		}
		action, rest, found := strings.Cut(rest, "}}")
		if !found {
			return nil, "", fmt.Errorf("{{%.20s has no end", action)
		}
		if short, trims := strings.CutSuffix(action, " -"); trims {
			action, rest = short, strings.TrimLeft(rest, " \t\r\n")
		}
		p.rest = rest
		var next part
		switch word, of, _ := strings.Cut(action, " "); word {
		case "end", "else":
			return parts, word, nil
		case "if", "with", "range":
			next, err = p.parseBlock(word, of)
		default:
			next, err = parseShown(action)
		}
		if err != nil {
			return nil, "", err
		}
		parts = append(parts, next)
	}
}

// parseBlock parses what follows on an {{if}}, {{with}} or {{range}}.
func (p *parser) parseBlock(word, of string) (part, error) {
	about, err := parseValue(of)
	if err != nil {
		return nil, err
	}
	parts, end, err := p.parseParts()
	var others []part
	if err == nil && end == "else" {
		others, end, err = p.parseParts()
	}
	if err == nil && end != "end" {
		err = fmt.Errorf("{{%s %s}} has no {{end}}", word, of)
	}
	return func(out *bytes.Buffer, dot reflect.Value) error {
		is, err := about(dot)
		switch {
		case err != nil:
			return err
		case !isTrue(is):
			return writeParts(out, others, dot)
		case word == "if":
			return writeParts(out, parts, dot)
		case word == "with":
			return writeParts(out, parts, is)
		}
		for i := range is.Len() {
			if err := writeParts(out, parts, is.Index(i)); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// parseShown parses what a page shows of a value.
func parseShown(action string) (part, error) {
	shown, err := parseValue(action)
	return func(out *bytes.Buffer, dot reflect.Value) error {
		is, err := shown(dot)
		if err != nil {
			return err
		}
		if text, is := is.Interface().(Trusted); is {
			out.WriteString(string(text))
			return nil
		}
		_, err = escapes().WriteString(out, fmt.Sprint(is.Interface()))
		return err
	}, err
}

// escapes is what html/template has in place of what HTML takes for its own.
func escapes() *strings.Replacer {
	return strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")
}

// parseValue parses a path of fields, or a word with one.
func parseValue(text string) (value, error) {
	word, args, _ := strings.Cut(text, " ")
	path, arg, _ := strings.Cut(args, " ")
	switch {
	case strings.HasPrefix(word, ".") && args == "":
		return fieldOf(word), nil
	case word == "len" && arg == "":
		return func(dot reflect.Value) (reflect.Value, error) {
			list, err := fieldOf(path)(dot)
			if err != nil {
				return list, err
			}
			return reflect.ValueOf(list.Len()), nil
		}, nil
	case word == "gt":
		least, err := strconv.Atoi(arg)
		return func(dot reflect.Value) (reflect.Value, error) {
			n, err := fieldOf(path)(dot)
			if err != nil {
				return n, err
			}
			return reflect.ValueOf(n.Int() > int64(least)), nil
		}, err
	case word == "or":
		other, err := strconv.Unquote(arg)
		return func(dot reflect.Value) (reflect.Value, error) {
			is, err := fieldOf(path)(dot)
			if err != nil {
				return is, err
			}
			return reflect.ValueOf(cmp.Or(is.String(), other)), nil
		}, err
	}
	return nil, fmt.Errorf("{{%s}} says nothing that is known here", text)
}

// fieldOf returns what is at the end of a path such as .Node.Name.
func fieldOf(path string) value {
	return func(dot reflect.Value) (reflect.Value, error) {
		for name := range strings.SplitSeq(strings.Trim(path, "."), ".") {
			if name == "" {
				break // the dot alone
			}
			next := reflect.Indirect(dot).FieldByName(name)
			if !next.IsValid() {
				return dot, fmt.Errorf("%s has no %s", dot.Type(), name)
			}
			dot = next
		}
		return dot, nil
	}
}

// isTrue tells whether there is something: a struct is, and an empty list is not.
func isTrue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		return true
	case reflect.Slice:
		return v.Len() > 0
	}
	return !v.IsZero()
}
