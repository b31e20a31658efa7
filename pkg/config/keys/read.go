package keys

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

// Reader holds the values of a file by their full keys, like "pool.batch", and
// what is wrong with them. A key without a value is as good as absent.
type Reader struct {
	Values map[string]any
	bad    map[string]bool
	errs   []*config.KeyError
	text   []byte // of the file, nil where there is none
}

// NewReader returns one without values.
func NewReader() *Reader {
	return &Reader{Values: map[string]any{}, bad: map[string]bool{}}
}

// Split takes a file apart; sections are the keys that have keys of their own. A file that is no YAML, or has a key
// twice, has no values to go on with: the error is a SyntaxError.
func Split(text []byte, sections ...string) (*Reader, error) {
	var file map[string]any
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	err := d.Decode(&file)
	if err == nil && d.Decode(new(any)) != io.EOF {
		err = errors.New("a second document begins in it: everything must stand in the first")
	}
	if err != nil && err != io.EOF { // which an empty file is
		return nil, fmt.Errorf("read configuration: %w", newSyntaxError(err))
	}
	parsed := NewReader()
	parsed.text = text
	for _, key := range slices.Sorted(maps.Keys(file)) {
		v := file[key]
		section, isMap := v.(map[string]any)
		switch {
		case v == nil:
		case !slices.Contains(sections, key):
			parsed.Values[key] = v
		case !isMap:
			parsed.AddError(key, v, "a section: its keys on lines of their own, indented")
		default:
			parsed.addSection(key, section)
		}
	}
	return parsed, nil
}

func (r *Reader) addSection(name string, keys map[string]any) {
	for key, v := range keys {
		if v != nil {
			r.Values[name+"."+key] = v
		}
	}
}

// AddError notes that the key's value is not what it must be.
func (r *Reader) AddError(key string, v any, want string) {
	shown := "a section"
	if text, ok := Scalar(v); ok {
		shown = strconv.Quote(text)
	} else if _, ok := v.([]any); ok {
		shown = "a list"
	}
	r.bad[key] = true
	r.errs = append(r.errs, &config.KeyError{Key: key, Value: shown, Want: want})
}

// AllSound tells whether none of the keys has an error of its own, so that it makes
// sense to judge them together.
func (r *Reader) AllSound(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return r.bad[k] })
}

// Set hands each value to its key and reports the values that have none.
func (r *Reader) Set(table []Key) {
	known := map[string]bool{}
	for _, k := range table {
		known[k.Name] = true
		if v, ok := r.Values[k.Name]; ok {
			for _, f := range k.Set(v) {
				r.AddError(k.Name+f.At, r.typedValue(k, f), f.Want+k.Want)
				r.bad[k.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		if !known[name] {
			r.errs = append(r.errs, &config.KeyError{Key: name, Unknown: true, Meant: meantKey(name, table)})
		}
	}
}

// typedValue is the value of a fault as people find it in their file.
func (r *Reader) typedValue(k Key, f Fault) any {
	if number := typedKeys(r.text)[k.Name].number; number != "" && f.At == "" {
		return number
	}
	return f.Value
}

// meantKey names the key of another section, or with another spelling, that was likely meant, ""
// if none is near.
func meantKey(name string, table []Key) string {
	last := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	var names []string
	for _, k := range table {
		if strings.EqualFold(last(k.Name), last(name)) {
			return k.Name
		}
		names = append(names, k.Name)
	}
	return config.Meant(name, names)
}

// Err returns all that is wrong, each with its line, nil if nothing is.
func (r *Reader) Err() error {
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

// Scalar returns the text of a value that is no list and no section. A fraction
// keeps its point, so that 2.0 is told from 2.
func Scalar(v any) (string, bool) {
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
