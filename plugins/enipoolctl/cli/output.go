package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
)

// PrintAs prints v as indented JSON or YAML if output is json or yaml, and else calls table.
func PrintAs(out io.Writer, output string, v any, table func() error) error {
	if output != "json" && output != "yaml" {
		return table()
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil && output == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", bytes.TrimSpace(text))
	return err
}

// OrDash returns s, or "-" for an empty cell of a table.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
