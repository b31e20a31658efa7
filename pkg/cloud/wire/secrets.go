package wire

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Secrets are words that no text may contain: credentials that are or were in use. The zero Secrets
// has none.
type Secrets struct {
	// Also is a pattern of other secrets, nil for none.
	Also *regexp.Regexp

	mu   sync.Mutex
	last []string // the newest last
}

// mostSecrets is how many words are kept: those of the newest three credentials, which have at most
// three words each. Older credentials may still be in an answer that is on its way.
const mostSecrets = 9

// Keep adds words. Words of up to three letters are no credentials, and hiding them would make texts
// unreadable.
func (s *Secrets) Keep(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range words {
		if len(w) > 3 && !slices.Contains(s.last, w) {
			s.last = append(s.last, w)
		}
	}
	s.last = s.last[max(0, len(s.last)-mostSecrets):]
}

// Hide returns the text without secrets.
func (s *Secrets) Hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.last {
		text = strings.ReplaceAll(text, w, "***")
	}
	if s.Also != nil {
		text = s.Also.ReplaceAllString(text, "***")
	}
	return text
}

// mostDetail is how many bytes of a cloud's text a line of a log has at most.
const mostDetail = 400

// Line makes a cloud's text fit for logs: without secrets, on one line, of limited length.
func (s *Secrets) Line(text string) string {
	text = strings.Join(strings.Fields(s.Hide(text)), " ")
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "..."
	}
	return text
}
