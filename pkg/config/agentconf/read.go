package agentconf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/goccy/go-yaml"
)

// reader holds the values of a file by their full keys, like "pool.batch", and
// what is wrong with them. A key without a value is as good as absent.
type reader struct {
	values map[string]any
	bad    map[string]bool
	errs   []*config.KeyError
	text   []byte // of the file, nil where there is none

	compares bool // it is for a simulation, which may have what no node may
}

// sections are the keys that have keys of their own.
var sections = []string{"cloud", "kubernetes", "pool"}

// splitFile takes a file apart. A file that is no YAML, or has a key twice, has no
// values to go on with.
func splitFile(text []byte) (*reader, error) {
	var file map[string]any
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	err := d.Decode(&file)
	if err == nil && d.Decode(new(any)) != io.EOF {
		err = errors.New("a second document begins in it: everything must stand in the first")
	}
	if err != nil && err != io.EOF { // which an empty file is
		return nil, fmt.Errorf("read configuration: %w", newSyntaxError(err))
	}
	parsed := &reader{values: map[string]any{}, bad: map[string]bool{}, text: text}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		v := file[key]
		section, isMap := v.(map[string]any)
		switch {
		case v == nil:
		case !slices.Contains(sections, key):
			parsed.values[key] = v
		case !isMap:
			parsed.addError(key, v, "a section: its keys on lines of their own, indented")
		default:
			parsed.addSection(key, section)
		}
	}
	return parsed, nil
}

func (r *reader) addSection(name string, keys map[string]any) {
	for key, v := range keys {
		if v != nil {
			r.values[name+"."+key] = v
		}
	}
}

// addError notes that the key's value is not what it must be.
func (r *reader) addError(key string, v any, want string) {
	shown := "a section"
	if text, ok := scalarText(v); ok {
		shown = strconv.Quote(text)
	} else if _, ok := v.([]any); ok {
		shown = "a list"
	}
	r.bad[key] = true
	r.errs = append(r.errs, &config.KeyError{Key: key, Value: shown, Want: want})
}

// allSound tells whether none of the keys has an error of its own, so that it makes
// sense to judge them together.
func (r *reader) allSound(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return r.bad[k] })
}

// setKeys hands each value to its key and reports the values that have none.
func (r *reader) setKeys(table []key) {
	known := map[string]bool{}
	for _, k := range table {
		known[k.name] = true
		if v, ok := r.values[k.name]; ok {
			for _, f := range k.set(v) {
				r.addError(k.name+f.at, r.typedValue(k, f), f.want+k.want)
				r.bad[k.name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.values)) {
		if !known[name] {
			r.errs = append(r.errs, &config.KeyError{Key: name, Unknown: true, Meant: meantKey(name, table)})
		}
	}
}

// typedValue is the value of a fault as people find it in their file.
func (r *reader) typedValue(k key, f fault) any {
	if number := typedKeys(r.text)[k.name].number; number != "" && f.at == "" {
		return number
	}
	return f.value
}

// meantKey names a key that stands elsewhere, or is written otherwise, "" if none is near.
func meantKey(name string, table []key) string {
	last := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	var names []string
	for _, k := range table {
		if strings.EqualFold(last(k.name), last(name)) {
			return k.name
		}
		names = append(names, k.name)
	}
	return config.Meant(name, names)
}

// joinErrors returns all that is wrong, each with its line, nil if nothing is.
func (r *reader) joinErrors() error {
	if len(r.errs) == 0 {
		return nil
	}
	at := typedKeys(r.text)
	var list []error
	for _, e := range r.errs {
		name, _, _ := strings.Cut(e.Key, "[")
		e.Line = at[name].line
		list = append(list, e)
	}
	return errors.Join(list...)
}

// scalarText returns the text of a value that is no list and no section. A fraction
// keeps its point, so that 2.0 is told from 2.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
		return fmt.Sprint(v), true
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.ContainsAny(text, ".IN") { // nor Inf, NaN
			text += ".0"
		}
		return text, true
	}
	return "", false
}
