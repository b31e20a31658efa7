package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
)

// recipe is what a Containerfile says of an image, with the values of its arguments
// put in.
type recipe struct {
	copies     []copied
	labels     map[string]string
	user       string
	entrypoint []string
}

// copied is one COPY: files below the context that go to a folder of the image.
type copied struct {
	line string
	from []string
	to   string // ends in a slash
}

// readRecipe reads a Containerfile. It knows the few instructions that an image of
// plain files needs and refuses the others, so that the image is what a builder
// would make of the same file.
func readRecipe(text string, given map[string]string) (recipe, error) {
	r := recipe{labels: map[string]string{}}
	values := map[string]string{}
	from := false
	for _, line := range instructions(text) {
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		var err error
		switch {
		case word == "FROM" && rest == "scratch" && !from:
			from = true
		case !from:
			err = errors.New("it must begin with FROM scratch")
		case word == "ARG":
			declare(rest, given, values)
		default:
			var unknown string
			rest = os.Expand(rest, func(name string) string {
				if _, ok := values[name]; !ok {
					unknown = name
				}
				return values[name]
			})
			if err = r.add(word, rest); unknown != "" {
				err = fmt.Errorf("no ARG line before it declares %s, or it has no value", unknown)
			}
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", line, err)
		}
	}
	if r.entrypoint == nil {
		return r, errors.New("there is no ENTRYPOINT")
	}
	return r, nil
}

// instructions returns the lines without comments, those that go on put together.
func instructions(text string) []string {
	var list []string
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		begun, more := strings.CutSuffix(line, `\`)
		if open += begun; more {
			continue
		}
		list = append(list, strings.Join(strings.Fields(open), " "))
		open = ""
	}
	return list
}

// declare notes an argument's value: the one given, or else the line's own.
func declare(line string, given, values map[string]string) {
	name, value, has := strings.Cut(line, "=")
	if v, ok := given[name]; ok {
		value, has = v, true
	}
	if has {
		values[name] = value
	}
}

// add takes an instruction in.
func (r *recipe) add(word, rest string) error {
	switch word {
	case "LABEL":
		labels, err := readLabels(rest)
		maps.Copy(r.labels, labels)
		return err
	case "USER":
		r.user = rest
		return nil
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &r.entrypoint)
	case "COPY":
		names := strings.Fields(rest)
		if last := len(names) - 1; last >= 1 && strings.HasPrefix(names[last], "/") && strings.HasSuffix(names[last], "/") && !strings.Contains(rest, "--") {
			r.copies = append(r.copies, copied{word + " " + rest, names[:last], names[last]})
			return nil
		}
		return errors.New("COPY must name files and then a folder like /bin/, without flags")
	}
	return fmt.Errorf("%s is not among FROM, ARG, LABEL, COPY, USER and ENTRYPOINT", word)
}

// readLabels reads pairs like a="b c".
func readLabels(rest string) (map[string]string, error) {
	labels := map[string]string{}
	for rest != "" {
		key, quoted, ok := strings.Cut(rest, `="`)
		value, more, closed := strings.Cut(quoted, `"`)
		if !ok || !closed || strings.ContainsAny(key, ` "`) {
			return nil, errors.New(`labels must be written like key="value"`)
		}
		labels[key], rest = value, strings.TrimSpace(more)
	}
	return labels, nil
}
