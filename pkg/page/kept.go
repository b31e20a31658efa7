package page

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// Kept is a page as it was made last, which is served again for a while: who reloads all the time costs what one
// reader does. Its method may be called from several goroutines.
type Kept struct {
	For time.Duration // how long; set before the first call

	mu   sync.Mutex
	made time.Time
	text []byte
}

// Read returns the page of now: the one that was made less than For ago, else what render writes.
func (k *Kept) Read(now time.Time, render func(io.Writer) error) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if age := now.Sub(k.made); k.text != nil && age >= 0 && age < k.For {
		return k.text, nil
	}
	var text bytes.Buffer
	if err := render(&text); err != nil {
		return nil, fmt.Errorf("make page: %w", err)
	}
	k.made, k.text = now, text.Bytes()
	return k.text, nil
}
