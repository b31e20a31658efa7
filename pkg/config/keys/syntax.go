package keys

import (
	"errors"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// SyntaxError is why a file is no YAML, or has a key twice.
type SyntaxError struct {
	text    string // one line, which names the file's lines as other errors do
	excerpt string // the file around it, "" if nothing shows where it is
}

// newSyntaxError returns the error that the decoder has.
func newSyntaxError(err error) *SyntaxError {
	text := yaml.FormatError(err, false, false)
	e := &SyntaxError{text: inWords(text)}
	if full := yaml.FormatError(err, false, true); full != text {
		e.excerpt = strings.TrimPrefix(strings.TrimPrefix(full, text), "\n")
	}
	return e
}

// Error has the excerpt too, for people at a terminal.
func (e *SyntaxError) Error() string {
	if e.excerpt == "" {
		return e.text
	}
	return e.text + "\n" + e.excerpt
}

// position is how the decoder names a line and a column.
var (
	position        = regexp.MustCompile(`^\[(\d+):\d+\] `)
	earlierPosition = regexp.MustCompile(` at \[(\d+):\d+\]$`)
)

// inWords writes the decoder's positions in words, and names a tab, which looks like a space.
func inWords(text string) string {
	text = position.ReplaceAllString(text, "line $1: ")
	text = earlierPosition.ReplaceAllString(text, " at line $1")
	return strings.ReplaceAll(text, "character '\t'", "a tab,")
}

// Brief is the text of an error without the excerpt of the file, for where there is one line.
func Brief(err error) string {
	if e := (*SyntaxError)(nil); errors.As(err, &e) && e.excerpt != "" {
		return strings.TrimSuffix(err.Error(), "\n"+e.excerpt)
	}
	return err.Error()
}
