package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
)

// PrintAs prints v for programs, or the table for people.
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

// OrDash is the text of a cell, which is never empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
