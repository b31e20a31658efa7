package firewall

import (
	"fmt"
	"strings"
)

// summary is an error in one line: where a transaction is refused the kernel answers
// each of its messages, dozens of times with the same words.
type summary struct{ error }

// Error returns the first line, and how many there are.
func (s summary) Error() string {
	text := s.error.Error()
	first, _, more := strings.Cut(text, "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %d lines more)", first, strings.Count(text, "\n"))
}

// Unwrap returns the whole error.
func (s summary) Unwrap() error { return s.error }
