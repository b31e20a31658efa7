package operated

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// door stands before the account for the calls of one operator.
type door struct {
	account http.Handler

	mu    sync.Mutex
	holds string         // the method whose next call waits here
	held  chan struct{}  // closed when it does
	goes  chan struct{}  // closed when it may go on
	calls map[string]int // that came, by method
}

// hold makes the next call of a method wait before it takes effect.
func (d *door) hold(method string) (held <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds, d.held, d.goes = method, make(chan struct{}), make(chan struct{})
	return d.held
}

// open lets the call take effect that waits.
func (d *door) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.goes != nil {
		close(d.goes)
	}
	d.holds, d.goes = "", nil
}

// changes counts the calls so far that change something.
func (d *door) changes() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for method, count := range d.calls {
		switch method {
		case "Shape", "Shapes", "Alive", "Subnets", "Interfaces", "Page", "Reservations":
		default:
			n += count
		}
	}
	return n
}

func (d *door) ServeHTTP(to http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // who called has gone
	}
	var call struct{ Method string }
	_ = json.Unmarshal(body, &call) // the account says what is wrong with it
	if wait := d.count(call.Method); wait != nil {
		<-wait
	}
	// What has come this far takes effect, whoever waits for the answer.
	req = req.WithContext(context.WithoutCancel(req.Context()))
	req.Body = io.NopCloser(bytes.NewReader(body))
	d.account.ServeHTTP(to, req)
}

// count notes a call, and returns what it has to wait for.
func (d *door) count(method string) (wait <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[method]++
	if d.holds != method {
		return nil
	}
	d.holds = ""
	close(d.held)
	return d.goes
}
