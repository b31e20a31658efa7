package demo

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/enipool/enipool/test/lab"
)

// apiSocket is where the account answers: both agents see it, whichever network
// namespace they are in.
const apiSocket = "/run/demo/vpc.sock"

// call is a call that reached the cloud.
type call struct {
	Node   string `json:"node"`
	Method string `json:"method"`
	began  time.Time
	ended  time.Time // zero while it goes on
}

// isChange tells whether the call is the first of those that change an ENI or its addresses:
// what attaches a new one, or deletes one that was detached, belongs to that.
func (c call) isChange() bool {
	switch c.Method {
	case "Create", "Assign", "Unassign", "Detach":
		return true
	}
	return false
}

// cloudAPI serves the account to the agents and notes their calls.
type cloudAPI struct {
	mu    sync.Mutex
	calls []call
}

// serveAccount returns when the socket is there.
func serveAccount(v *lab.VPC) (*cloudAPI, error) {
	if err := os.MkdirAll(filepath.Dir(apiSocket), 0o755); err != nil {
		return nil, err
	}
	c := &cloudAPI{}
	_, err := v.Serve(apiSocket, c.noteCalls(v.Account.Handler()))
	return c, err
}

// noteCalls passes calls on and notes whose they are and how long they take.
func (c *cloudAPI) noteCalls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the agent is gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		one := call{began: time.Now()}
		_ = json.Unmarshal(body, &one) // next refuses what is none
		c.mu.Lock()
		number := len(c.calls)
		c.calls = append(c.calls, one)
		c.mu.Unlock()
		next.ServeHTTP(w, r)
		c.mu.Lock()
		c.calls[number].ended = time.Now()
		c.mu.Unlock()
	})
}

// changesOf returns the calls of the node since then that change something.
func (c *cloudAPI) changesOf(node string, since time.Time) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []call
	for _, one := range c.calls {
		if one.Node == node && one.began.After(since) {
			list = append(list, one)
		}
	}
	return untilAttached(list)
}

// untilAttached returns those of a node's calls that change something. One that creates an ENI
// goes on until that is attached: pods wait for both.
func untilAttached(calls []call) (changes []call) {
	var attached []time.Time
	for _, one := range calls {
		if one.Method == "Attach" {
			attached = append(attached, one.ended)
		}
	}
	for _, one := range calls {
		if !one.isChange() {
			continue
		}
		if one.Method == "Create" {
			one.ended = time.Time{}
			if len(attached) > 0 {
				one.ended, attached = attached[0], attached[1:]
			}
		}
		changes = append(changes, one)
	}
	return changes
}

// countRounds counts how often somebody waited for the cloud: calls that were under way
// at the same time are one round. They are in the order in which they began.
func countRounds(calls []call) int {
	n := 0
	var until time.Time
	for _, c := range calls {
		if c.began.After(until) {
			n++
		}
		if c.ended.IsZero() {
			return n // it goes on: the others came while it did
		}
		if c.ended.After(until) {
			until = c.ended
		}
	}
	return n
}
