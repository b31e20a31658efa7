package keys

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a value that was refused; At is its position in a list, like "[2]".
type Fault struct {
	At    string
	Value any
	Want  string // stands before Key.Want
}

// Single is a key with a single value. set returns false if it refuses it.
func Single(name, want string, set func(text string) bool) Key {
	return Key{Name: name, Want: want, Set: func(v any) []Fault {
		if text, ok := Scalar(v); ok && set(text) {
			return nil
		}
		return []Fault{{Value: v}}
	}}
}

// List is a key with a list of values, each of which is handed to add.
func List(name, want string, add func(text string) bool) Key {
	return Key{Name: name, Want: want, IsList: true, Set: func(v any) (faults []Fault) {
		values, ok := v.([]any)
		if !ok {
			return []Fault{{Value: v, Want: "a list in brackets, each of it "}}
		}
		for i, v := range values {
			if text, ok := Scalar(v); !ok || !add(text) {
				faults = append(faults, Fault{At: fmt.Sprintf("[%d]", i), Value: v})
			}
		}
		return faults
	}}
}

// Number is a whole number from lo to hi.
func Number(name string, into *int, lo, hi int) Key {
	return Single(name, fmt.Sprintf("a whole number from %d to %d", lo, hi), func(text string) bool {
		n, err := strconv.Atoi(text)
		if err != nil || n < lo || n > hi {
			return false
		}
		*into = n
		return true
	}).At(ValueAt(into, func() any { return *into })).Of(Rule{"type": []string{"integer", "string", "null"}, "minimum": lo, "maximum": hi, "pattern": "^[0-9]+$"})
}

// Percent is a share in whole percent. A plain whole number is refused: 1 may be
// meant as 1% or as 100%.
func Percent(name string, into *int, lo, hi int) Key {
	want := fmt.Sprintf(`whole percent like "50%%", or the same as a fraction like 0.5, from "%d%%" to "%d%%"`, lo, hi)
	return Single(name, want, func(text string) bool {
		n, ok := parsePercent(text)
		if !ok || n < lo || n > hi {
			return false
		}
		*into = n
		return true
	}).At(ValueAt(into, func() any { return fmt.Sprintf("%d%%", *into) })).In("percent").Of(Rule{"type": []string{"string", "number", "null"},
		"minimum": float64(lo) / 100, "maximum": float64(hi) / 100, "pattern": `^([0-9]+%|[0-9]+\.[0-9]+|0)$`})
}

func parsePercent(text string) (int, bool) {
	digits, isPercent := strings.CutSuffix(text, "%")
	if whole, fraction, isFraction := strings.Cut(text, "."); isFraction && !isPercent {
		fraction = strings.TrimRight(fraction, "0")
		if whole == "" || len(fraction) > 2 {
			return 0, false
		}
		digits = whole + (fraction + "00")[:2]
	} else if !isPercent && text != "0" {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}

// Duration is a time with its unit from lo to hi.
func Duration(name string, into *time.Duration, lo, hi time.Duration) Key {
	return timeKey(name, "", into, lo, hi, time.Nanosecond)
}

// Seconds is a duration for windows that are kept second by second.
func Seconds(name string, into *time.Duration, lo, hi time.Duration) Key {
	return timeKey(name, " in whole seconds", into, lo, hi, time.Second)
}

func timeKey(name, how string, into *time.Duration, lo, hi, step time.Duration) Key {
	want := fmt.Sprintf(`a duration%s like "30s", from "%s" to "%s"`, how, ShortDuration(lo), ShortDuration(hi))
	return Single(name, want, func(text string) bool {
		d, err := time.ParseDuration(text)
		if err != nil || d < lo || d > hi || d%step != 0 {
			return false
		}
		*into = d
		return true
	}).At(ValueAt(into, func() any { return ShortDuration(*into) })).Of(durationRule(lo))
}

// durationRule is what a schema can say of a duration. 0 is the only one without a unit.
func durationRule(lo time.Duration) Rule {
	const pattern = `^(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`
	if lo > 0 {
		return Rule{"type": []string{"string", "null"}, "pattern": pattern}
	}
	return Rule{"type": []string{"string", "integer", "null"}, "pattern": pattern + "|^0$", "minimum": 0, "maximum": 0}
}

// ShortDuration is how people write a duration: "10m" and not "10m0s".
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Option is a value that has a name.
type Option[T any] struct {
	Name  string
	Value T
}

// Named is a value with its name.
func Named[T any](name string, value T) Option[T] { return Option[T]{Name: name, Value: value} }

// Choice is one of several names.
func Choice[T comparable](name string, into *T, choices ...Option[T]) Key {
	want := choices[0].Name // as a sentence has them: "a, b or c"
	for i, c := range choices[1:] {
		if i == len(choices)-2 {
			want += " or " + c.Name
		} else {
			want += ", " + c.Name
		}
	}
	return Single(name, want, func(text string) bool {
		for _, c := range choices {
			if c.Name == text {
				*into = c.Value
				return true
			}
		}
		return false
	}).At(ValueAt(into, func() any {
		for _, c := range choices {
			if c.Value == *into {
				return asYAML(c.Name)
			}
		}
		return nil
	})).Of(choiceRule(choices))
}

// asYAML is how YAML has a name: true and false are no text.
func asYAML(name string) any {
	switch name {
	case "true":
		return true
	case "false":
		return false
	}
	return name
}

func choiceRule[T any](choices []Option[T]) Rule {
	var values []any
	for _, c := range choices {
		if values = append(values, asYAML(c.Name)); asYAML(c.Name) != c.Name {
			values = append(values, c.Name)
		}
	}
	return Rule{"enum": append(values, nil)}
}

// Flag is true or false.
func Flag(name string, into *bool) Key {
	return Choice(name, into, Named("true", true), Named("false", false))
}

// File is the absolute path of a file, or "" where that is the default.
func File(name string, into *string) Key {
	return Single(name, "an absolute path of a file", func(text string) bool {
		if text == *into {
			return true
		}
		*into = filepath.Clean(text)
		return filepath.IsAbs(text) && *into != "/" && !strings.ContainsRune(text, 0)
	}).At(TextAt(into)).Of(Rule{"type": []string{"string", "null"}, "pattern": "^(/.+)?$"})
}

// WordBytes are what clouds make IDs of.
const WordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// wantWord is what an ID must be.
const wantWord = "at most 64 letters, digits, dashes and underscores"

func isWord(text string) bool { return len(text) <= 64 && strings.Trim(text, WordBytes) == "" }

// Word is an ID of a cloud, or "" where that is the default.
func Word(name string, into *string) Key {
	return Single(name, wantWord, func(text string) bool {
		*into = text
		return isWord(text)
	}).At(TextAt(into)).Of(Rule{"type": []string{"string", "integer", "null"}, "pattern": "^[a-zA-Z0-9_-]{0,64}$"})
}

// Words is a list of IDs, each once.
func Words(name string, into *[]string) Key {
	return List(name, wantWord+", once", func(text string) bool {
		*into = append(*into, text)
		return text != "" && isWord(text) && slices.Index(*into, text) == len(*into)-1
	}).At(ListAt(into)).Of(Rule{"type": []string{"array", "null"}, "uniqueItems": true,
		"items": Rule{"type": []string{"string", "integer"}, "pattern": "^[a-zA-Z0-9_-]{1,64}$"}})
}

// Tags is a set of tags: names and values. An empty list is as good as none.
func Tags(name string, into *map[string]string) Key {
	const want = `tags like {key: value}: of at most 128 and 256 bytes, and none of "aws:" or "enipool/", which are taken`
	k := Key{Name: name, Want: want, IsList: true, Set: func(v any) (faults []Fault) {
		tags, ok := v.(map[string]any)
		// People who empty a section write [] where {} would be right.
		if none, isList := v.([]any); isList && len(none) == 0 {
			return nil
		}
		if !ok || len(tags) > 40 {
			return []Fault{{Value: v}}
		}
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			value, ok := Scalar(tags[tag])
			if !ok || tag == "" || len(tag) > 128 || len(value) > 256 || strings.HasPrefix(tag, "aws:") || strings.HasPrefix(tag, "enipool/") {
				faults = append(faults, Fault{At: "[" + tag + "]", Value: tags[tag]})
				continue
			}
			if *into == nil {
				*into = map[string]string{}
			}
			(*into)[tag] = value
		}
		return faults
	}}
	return k.At(Place{Into: into, Same: func(other any) bool { return maps.Equal(*into, *other.(*map[string]string)) },
		Take: func(other any) { *into = *other.(*map[string]string) }, Shown: func() any { return *into }}).
		Of(Rule{"type": []string{"object", "array", "null"}, "maxItems": 0, "maxProperties": 40,
			"propertyNames":        Rule{"not": Rule{"pattern": "^(aws:|enipool/)"}, "minLength": 1, "maxLength": 128},
			"additionalProperties": Rule{"type": []string{"string", "number", "boolean"}, "maxLength": 256}})
}
