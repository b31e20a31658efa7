// Package browser opens pages in a real browser, Debian's chromium, for tests: what a page shows at a width and in
// a theme, and what the browser reports as wrong.
package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Chromium is a browser that runs. It is told what to do over a pipe, in messages that end with a zero byte.
type Chromium struct {
	t    *testing.T
	send *os.File

	mu      sync.Mutex
	last    int
	answers map[int]chan message
	heard   func(session string, m message)
	gone    error
}

// message is one of the DevTools protocol, either way.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start starts a browser that ends with the test. Where there is none the test is left out, and fails with ENIPOOL_KUBE
// set, which says that all tests can be run.
func Start(t *testing.T) *Chromium {
	t.Helper()
	program, err := exec.LookPath("chromium")
	switch {
	case err != nil && os.Getenv("ENIPOOL_KUBE") != "":
		t.Fatalf("chromium (Debian's package chromium) is not there: %v", err)
	case err != nil:
		t.Skipf("chromium (Debian's package chromium) is not there: %v", err)
	}
	fromUs, send, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	receive, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	// Its own sandbox needs rights that containers lack; it opens nothing but the test's pages.
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--no-proxy-server",
		"--user-data-dir="+home, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.ExtraFiles = []*os.File{fromUs, toUs} // 3, from which it reads, and 4
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	fromUs.Close()
	toUs.Close()
	c := &Chromium{t: t, send: send, answers: map[int]chan message{}, heard: func(string, message) {}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		c.readAll(receive)
	}()
	t.Cleanup(func() {
		c.mu.Lock()
		gone := c.gone
		c.mu.Unlock()
		send.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		<-read
		receive.Close()
		if gone != nil {
			t.Logf("chromium said:\n%.4000s", said.String())
		}
	})
	return c
}

// readAll hands out what the browser says until it is gone.
func (c *Chromium) readAll(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.gone = fmt.Errorf("chromium ended: %w", err)
			for _, a := range c.answers {
				close(a)
			}
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		c.mu.Lock()
		answer, heard := c.answers[m.ID], c.heard
		delete(c.answers, m.ID)
		c.mu.Unlock()
		if m.Method != "" {
			heard(m.Session, m)
		} else if answer != nil {
			answer <- m
		}
	}
}

// call has the browser do something and reads its answer into result, which may be nil.
func (c *Chromium) call(session, method string, params, result any) {
	c.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	id := c.last
	if c.gone != nil {
		c.mu.Unlock()
		c.t.Fatalf("%s: %v", method, c.gone)
	}
	c.answers[id] = answer
	text, err := json.Marshal(message{ID: id, Session: session, Method: method, Params: raw})
	if err == nil {
		_, err = c.send.Write(append(text, 0))
	}
	c.mu.Unlock()
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	m, open := <-answer
	switch {
	case !open:
		c.t.Fatalf("%s: chromium ended", method)
	case m.Error != nil:
		c.t.Fatalf("%s: %s", method, m.Error.Message)
	case result != nil:
		if err := json.Unmarshal(m.Result, result); err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
	}
}
