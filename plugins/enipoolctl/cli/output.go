package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// Format is the version of what commands print for programs. Within one, names keep their meaning and names come; none goes or is told in another
// way.
const Format = 1

// JSON returns v, which has to be an object, as indented JSON that begins with the version of its format.
func JSON(v any) ([]byte, error) {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // it is read in terminals, and what it tells has a < in it
	if err := to.Encode(v); err != nil {
		return nil, err
	}
	fields, isObject := bytes.CutPrefix(bytes.TrimSpace(text.Bytes()), []byte("{"))
	if !isObject {
		return nil, fmt.Errorf("write %T as JSON: it is no object, and has no room for the version of its format", v)
	}
	head := fmt.Appendf(nil, `{"format":%d`, Format)
	if !bytes.Equal(fields, []byte("}")) {
		head = append(head, ',')
	}
	var indented bytes.Buffer
	err := json.Indent(&indented, append(head, fields...), "", "  ")
	return indented.Bytes(), err
}

// PrintAs prints v, an object, as JSON or YAML if output is json or yaml, and else calls table.
func PrintAs(out io.Writer, output string, v any, table func() error) error {
	if output != "json" && output != "yaml" {
		return table()
	}
	text, err := JSON(v)
	if err == nil && output == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", bytes.TrimSpace(text))
	return err
}

// Output is the flag -o of a command that prints lines for people, and json or yaml for programs.
type Output struct{ is string }

var outputs = [...]string{"text", "json", "yaml"}

// AddFlag adds the flag.
func (o *Output) AddFlag(cmd *cobra.Command) {
	o.is = outputs[0]
	cmd.Flags().VarP(o, "output", "o", strings.Join(outputs[:], ", "))
	Offer(cmd, "output", outputs[:]...)
}

// String returns what is asked for.
func (o *Output) String() string { return o.is }

// Set takes in what is asked for.
func (o *Output) Set(text string) error {
	if !slices.Contains(outputs[:], text) {
		return fmt.Errorf("must be one of %s", strings.Join(outputs[:], ", "))
	}
	o.is = text
	return nil
}

// Type is what the help calls the flag's value.
func (o *Output) Type() string { return "string" }

// Print prints v as PrintAs does.
func (o *Output) Print(cmd *cobra.Command, v any, text func() error) error {
	return PrintAs(cmd.OutOrStdout(), o.is, v, text)
}

// OrDash returns s, or "-" for an empty cell of a table.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
