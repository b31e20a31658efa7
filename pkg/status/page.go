package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Page is the file of an agent that runs. It knows what it wrote last, so that a tick that found
// nothing new reads nothing and makes the text once.
type Page struct {
	File
	text    []byte // as it was written last, but for its times
	written time.Time
}

// Write makes the file hold s, unless it holds the same and is not 30 seconds old. Where somebody has
// removed it, it is made again.
func (p *Page) Write(s Status) error {
	timeless := s
	timeless.Written, timeless.Due = time.Time{}, time.Time{}
	text, err := json.Marshal(timeless)
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	age := s.Written.Sub(p.written)
	if _, gone := os.Stat(p.Path); gone == nil && age >= 0 && age < refresh && bytes.Equal(text, p.text) {
		return nil
	}
	if err := p.File.writeAlways(s); err != nil {
		return err
	}
	p.text, p.written = text, s.Written
	return nil
}
