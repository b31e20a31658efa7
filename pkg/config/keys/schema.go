package keys

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Schema returns the JSON schema of a program's file with these keys, by which editors help to write it; sections are as for
// Split. The keys' values are the defaults. What keys must be together, and what a schema can't say, like the range of a
// duration, only the program judges: a file that it takes is one by the schema too.
func Schema(program, description string, table []Key, sections ...string) []byte {
	top := Rule{}
	into := map[string]Rule{"": top}
	for _, name := range sections {
		into[name] = Rule{}
		top[name] = Rule{"type": []string{"object", "null"}, "additionalProperties": false, "properties": into[name]}
	}
	for _, k := range table {
		section, name, found := strings.Cut(k.Name, ".")
		if !found {
			section, name = "", k.Name
		}
		into[section][name] = k.schemaRule()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(Rule{ // rules are made of what JSON has
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"title":                "The configuration of " + program,
		"description":          description,
		"type":                 "object",
		"additionalProperties": false,
		"properties":           top,
	})
	return text.Bytes()
}

// schemaRule is what the schema has of a key.
func (k Key) schemaRule() Rule {
	r := Rule{"description": k.Doc + k.schemaHint(), "x-reload": "live", "x-since": k.Since}
	for name, v := range k.Rule {
		r[name] = v
	}
	if k.Needs == AtRestart {
		r["x-reload"] = "restart"
	}
	if k.Unit != "" {
		r["x-unit"] = k.Unit
	}
	if v := k.shownValue(); v != nil && !k.Free {
		r["default"] = v
	}
	return r
}

// shownValue is the value as a file has it, nil where that is nothing.
func (k Key) shownValue() any {
	v := k.Places[0].Shown()
	if text, err := json.Marshal(v); err != nil || slices.Contains([]string{`""`, "null", "{}", "[]"}, string(text)) {
		return nil
	}
	return v
}

// schemaHint is what the schema has no field for that editors show.
func (k Key) schemaHint() string {
	text := " Must be " + k.Want + "."
	if k.IsList {
		text = " Each must be " + k.Want + "."
	}
	if k.Needs == AtRestart {
		text += " A change needs a restart of the agent."
	}
	return text
}
