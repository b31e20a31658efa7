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

// Read returns the page of now: the one that was made less than For ago, or since the caller came, else what render writes. However long that takes,
// who comes meanwhile waits for it and makes no other one. clock is time.Now.
func (k *Kept) Read(clock func() time.Time, render func(io.Writer) error) ([]byte, error) {
	came := clock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.text != nil && (k.made.After(came) || clock().Sub(k.made) < k.For) {
		return k.text, nil
	}
	var text bytes.Buffer
	if err := render(&text); err != nil {
		return nil, fmt.Errorf("make page: %w", err)
	}
	k.made, k.text = clock(), text.Bytes()
	return k.text, nil
}
