package agentconf

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
)

// fault is a value that was refused; at is its position in a list, like "[2]".
type fault struct {
	at    string
	value any
	want  string // stands before key.want
}

// singleKey is a key with a single value. set returns false if it refuses it.
func singleKey(name, want string, set func(text string) bool) key {
	return key{name: name, want: want, set: func(v any) []fault {
		if text, ok := scalarText(v); ok && set(text) {
			return nil
		}
		return []fault{{value: v}}
	}}
}

// listKey is a key with a list of values, each of which is handed to add.
func listKey(name, want string, add func(text string) bool) key {
	return key{name: name, want: want, isList: true, set: func(v any) (faults []fault) {
		values, ok := v.([]any)
		if !ok {
			return []fault{{value: v, want: "a list in brackets, each of it "}}
		}
		for i, v := range values {
			if text, ok := scalarText(v); !ok || !add(text) {
				faults = append(faults, fault{at: fmt.Sprintf("[%d]", i), value: v})
			}
		}
		return faults
	}}
}

// numberKey is a whole number from lo to hi.
func numberKey(name string, into *int, lo, hi int) key {
	return singleKey(name, fmt.Sprintf("a whole number from %d to %d", lo, hi), func(text string) bool {
		n, err := strconv.Atoi(text)
		if err != nil || n < lo || n > hi {
			return false
		}
		*into = n
		return true
	}).at(singlePlace(into, func() any { return *into })).of(rule{"type": []string{"integer", "string", "null"}, "minimum": lo, "maximum": hi, "pattern": "^[0-9]+$"})
}

// maskKey is bits of the packet mark. A refused value is told in hexadecimal, as masks are
// written: of 0x1ff the YAML parser keeps only the number.
func maskKey(name string, into *uint32) key {
	const want = "eight bits in a row without 0x4000 and 0x8000, like 0x000000ff"
	k := key{name: name, want: want, set: func(v any) []fault {
		text, ok := scalarText(v)
		bits, err := strconv.ParseUint(text, 0, 32)
		if *into = uint32(bits); ok && err == nil && ipam.ValidMarkMask(*into) == nil {
			return nil
		}
		if err == nil {
			v = fmt.Sprintf("%#x", bits)
		}
		return []fault{{value: v}}
	}}
	return k.at(singlePlace(into, func() any { return fmt.Sprintf("0x%08x", *into) })).
		of(rule{"type": []string{"integer", "string", "null"}, "pattern": "^(0[xX][0-9a-fA-F]+|[0-9]+)$"})
}

// percentKey is a share in whole percent. A plain whole number is refused: 1 may be
// meant as 1% or as 100%.
func percentKey(name string, into *int, lo, hi int) key {
	want := fmt.Sprintf(`whole percent like "50%%", or the same as a fraction like 0.5, from "%d%%" to "%d%%"`, lo, hi)
	return singleKey(name, want, func(text string) bool {
		n, ok := parsePercent(text)
		if !ok || n < lo || n > hi {
			return false
		}
		*into = n
		return true
	}).at(singlePlace(into, func() any { return fmt.Sprintf("%d%%", *into) })).in("percent").of(rule{"type": []string{"string", "number", "null"},
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

// durationKey is a time with its unit from lo to hi.
func durationKey(name string, into *time.Duration, lo, hi time.Duration) key {
	return timeKey(name, "", into, lo, hi, time.Nanosecond)
}

// secondsKey is a duration for windows that are kept second by second.
func secondsKey(name string, into *time.Duration, lo, hi time.Duration) key {
	return timeKey(name, " in whole seconds", into, lo, hi, time.Second)
}

func timeKey(name, how string, into *time.Duration, lo, hi, step time.Duration) key {
	want := fmt.Sprintf(`a duration%s like "30s", from "%s" to "%s"`, how, ShortDuration(lo), ShortDuration(hi))
	return singleKey(name, want, func(text string) bool {
		d, err := time.ParseDuration(text)
		if err != nil || d < lo || d > hi || d%step != 0 {
			return false
		}
		*into = d
		return true
	}).at(singlePlace(into, func() any { return ShortDuration(*into) })).of(durationRule(lo))
}

// durationRule is what a schema can say of a duration. 0 is the only one without a unit.
func durationRule(lo time.Duration) rule {
	const pattern = `^(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`
	if lo > 0 {
		return rule{"type": []string{"string", "null"}, "pattern": pattern}
	}
	return rule{"type": []string{"string", "integer", "null"}, "pattern": pattern + "|^0$", "minimum": 0, "maximum": 0}
}

// ShortDuration writes a duration as people do: "10m" and not "10m0s".
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

// choice is a value that has a name.
type choice[T any] struct {
	name  string
	value T
}

// choiceKey is one of several names.
func choiceKey[T comparable](name string, into *T, choices ...choice[T]) key {
	want := choices[0].name
	for i, c := range choices[1:] {
		if i == len(choices)-2 {
			want += " or " + c.name
		} else {
			want += ", " + c.name
		}
	}
	return singleKey(name, want, func(text string) bool {
		for _, c := range choices {
			if c.name == text {
				*into = c.value
				return true
			}
		}
		return false
	}).at(singlePlace(into, func() any {
		for _, c := range choices {
			if c.value == *into {
				return asYAML(c.name)
			}
		}
		return nil
	})).of(choiceRule(choices))
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

func choiceRule[T any](choices []choice[T]) rule {
	var values []any
	for _, c := range choices {
		if values = append(values, asYAML(c.name)); asYAML(c.name) != c.name {
			values = append(values, c.name)
		}
	}
	return rule{"enum": append(values, nil)}
}

// flagKey is true or false.
func flagKey(name string, into *bool) key {
	return choiceKey(name, into, choice[bool]{"true", true}, choice[bool]{"false", false})
}

// fileKey is the absolute path of a file, or "" where that is the default.
func fileKey(name string, into *string) key {
	return singleKey(name, "an absolute path of a file", func(text string) bool {
		if text == *into {
			return true
		}
		*into = filepath.Clean(text)
		return filepath.IsAbs(text) && *into != "/" && !strings.ContainsRune(text, 0)
	}).at(textAt(into)).of(rule{"type": []string{"string", "null"}, "pattern": "^(/.+)?$"})
}

// wordBytes are what clouds make IDs of.
const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// wantWord is what an ID must be.
const wantWord = "at most 64 letters, digits, dashes and underscores"

func isWord(text string) bool { return len(text) <= 64 && strings.Trim(text, wordBytes) == "" }

// wordKey is an ID of a cloud, or "" where that is the default.
func wordKey(name string, into *string) key {
	return singleKey(name, wantWord, func(text string) bool {
		*into = text
		return isWord(text)
	}).at(textAt(into)).of(rule{"type": []string{"string", "integer", "null"}, "pattern": "^[a-zA-Z0-9_-]{0,64}$"})
}

// wordsKey is a list of IDs, each once.
func wordsKey(name string, into *[]string) key {
	return listKey(name, wantWord+", once", func(text string) bool {
		*into = append(*into, text)
		return text != "" && isWord(text) && slices.Index(*into, text) == len(*into)-1
	}).at(listPlace(into)).of(rule{"type": []string{"array", "null"}, "uniqueItems": true,
		"items": rule{"type": []string{"string", "integer"}, "pattern": "^[a-zA-Z0-9_-]{1,64}$"}})
}

// tagsKey is a set of tags: names and values. An empty list is as good as none.
func tagsKey(name string, into *map[string]string) key {
	const want = `tags like {key: value}: of at most 128 and 256 bytes, and none of "aws:" or "enipool/", which are taken`
	k := key{name: name, want: want, isList: true, set: func(v any) (faults []fault) {
		tags, ok := v.(map[string]any)
		if none, isList := v.([]any); isList && len(none) == 0 {
			return nil
		}
		if !ok || len(tags) > 40 {
			return []fault{{value: v}}
		}
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			value, ok := scalarText(tags[tag])
			if !ok || tag == "" || len(tag) > 128 || len(value) > 256 || strings.HasPrefix(tag, "aws:") || strings.HasPrefix(tag, "enipool/") {
				faults = append(faults, fault{at: "[" + tag + "]", value: tags[tag]})
				continue
			}
			if *into == nil {
				*into = map[string]string{}
			}
			(*into)[tag] = value
		}
		return faults
	}}
	return k.at(place{into: into, same: func(other any) bool { return maps.Equal(*into, *other.(*map[string]string)) },
		take: func(other any) { *into = *other.(*map[string]string) }, shown: func() any { return *into }}).
		of(rule{"type": []string{"object", "array", "null"}, "maxItems": 0, "maxProperties": 40,
			"propertyNames":        rule{"not": rule{"pattern": "^(aws:|enipool/)"}, "minLength": 1, "maxLength": 128},
			"additionalProperties": rule{"type": []string{"string", "number", "boolean"}, "maxLength": 256}})
}
