package wire

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Secrets are words that no text may tell: credentials that are or were in use. The zero
// Secrets has none.
type Secrets struct {
	// Also is what else no text may tell, nil for nothing.
	Also *regexp.Regexp

	mu   sync.Mutex
	last []string // the newest last
}

// Credentials have at most three words each. Those before the newest may still be in an
// answer that is on its way.
const mostSecrets = 9

// Keep adds words. Short ones are nobody's, and would hide half of every text.
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

// mostDetail is how much of a cloud's words is worth a line of a log.
const mostDetail = 400

// Line is a cloud's text as it may be told: without secrets, on one line of limited length.
func (s *Secrets) Line(text string) string {
	text = strings.Join(strings.Fields(s.Hide(text)), " ")
	if len(text) > mostDetail {
		text = strings.ToValidUTF8(text[:mostDetail], "") + "..."
	}
	return text
}
