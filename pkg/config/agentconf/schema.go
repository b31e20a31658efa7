package agentconf

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Schema returns the JSON schema of the file, by which editors help to write it. Every file that
// Parse takes fits the schema; Parse also checks keys against each other, and what a schema can't
// express, like the range of a duration.
func Schema() []byte {
	c := Default()
	top := rule{}
	into := map[string]rule{"": top}
	for _, name := range sections {
		into[name] = rule{}
		top[name] = rule{"type": []string{"object", "null"}, "additionalProperties": false, "properties": into[name]}
	}
	for _, k := range allKeys(&c) {
		section, name, found := strings.Cut(k.name, ".")
		if !found {
			section, name = "", k.name
		}
		into[section][name] = k.schemaRule()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(rule{ // rules are made of what JSON has
		"$schema":              "http://json-schema.org/draft-07/schema#",
		"title":                "The configuration of enipool-agent",
		"description":          "Made from the table of keys by `make keys`. agent.yaml explains every key.",
		"type":                 "object",
		"additionalProperties": false,
		"properties":           top,
	})
	return text.Bytes()
}

// schemaRule is what the schema has of a key.
func (k key) schemaRule() rule {
	r := rule{"description": k.doc + k.schemaHint(), "x-reload": "live", "x-since": k.since}
	for name, v := range k.rule {
		r[name] = v
	}
	if k.needs == atRestart {
		r["x-reload"] = "restart"
	}
	if k.unit != "" {
		r["x-unit"] = k.unit
	}
	if v := k.shownValue(); v != nil && !k.free {
		r["default"] = v
	}
	return r
}

// shownValue is the value as a file has it, nil where that is nothing.
func (k key) shownValue() any {
	v := k.places[0].shown()
	if text, err := json.Marshal(v); err != nil || slices.Contains([]string{`""`, "null", "{}", "[]"}, string(text)) {
		return nil
	}
	return v
}

// schemaHint is what the schema has no field for that editors show.
func (k key) schemaHint() string {
	text := " Must be " + k.want + "."
	if k.isList {
		text = " Each must be " + k.want + "."
	}
	if k.needs == atRestart {
		text += " A change needs a restart of the agent."
	}
	return text
}

// headWidth is how long the lines of the file's head are at most.
const headWidth = 90

// Head returns the lines of the file's head that say which changes need a restart.
func Head() string {
	c := Default()
	var names []string
	for _, k := range allKeys(&c) {
		if k.needs == atRestart {
			names = append(names, k.name)
		}
	}
	text, line := "", "# Changes to the file apply immediately, but for these keys, which need a restart of the agent:"
	words := slices.Concat(strings.Fields(line), strings.Fields(strings.Join(names, ", ")+"."))
	line = words[0]
	for _, word := range words[1:] {
		if len(line)+1+len(word) > headWidth {
			text, line = text+line+"\n", "#"
		}
		line += " " + word
	}
	return text + line + "\n"
}
