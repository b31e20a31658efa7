package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// callers connect to addresses by number, from each node, again and again. At each the pods of one name answer, one after the other, and nobody else.
type callers struct {
	end func() // ends the calls and tells what was wrong

	mu    sync.Mutex
	heard map[way][]string // uids of pods, in the order in which they answered first
	calls int              // that were answered
	wrong map[string]bool
}

// way is where a caller calls from, and what it calls.
type way struct {
	from string // a node
	to   netip.Addr
}

// callEvery is how long a caller pauses. Those of a test are a few.
const callEvery = 100 * time.Millisecond

// call begins to call the addresses of pods, until end or the test's end.
func (c *cluster) call(pods map[string]netip.Addr) *callers {
	is := &callers{heard: map[way][]string{}, wrong: map[string]bool{}}
	stop := make(chan struct{})
	var under sync.WaitGroup
	for _, n := range c.nodes {
		for name, addr := range pods {
			under.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(callEvery):
						is.callOnce(n, name, addr)
					}
				}
			})
		}
	}
	is.end = sync.OnceFunc(func() {
		close(stop)
		under.Wait()
		for what := range is.wrong {
			c.t.Error(what)
		}
		c.t.Logf("%d calls of %d addresses were answered", is.calls, len(pods))
	})
	c.t.Cleanup(is.end)
	return is
}

// answersAt asks who is at an address.
func (n *node) answersAt(addr netip.Addr) (code int, body string, err error) {
	var conn net.Conn
	// A lost packet is sent again after a second: who tries anew is not late by that.
	err = n.Do(func() (err error) { conn, err = net.DialTimeout("tcp", addr.String()+":80", time.Second/2); return err })
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return 0, "", err
	}
	if _, err := io.WriteString(conn, "GET /who HTTP/1.0\r\n\r\n"); err != nil {
		return 0, "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// callOnce notes who answers. That nobody does is what happens between a pod and the next one.
func (s *callers) callOnce(n *node, name string, addr netip.Addr) {
	code, body, err := n.answersAt(addr)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	who, at := strings.Fields(body), way{n.Name, addr}
	if code != http.StatusOK || len(who) != 2 || who[0] != name {
		s.wrong[fmt.Sprintf("from node %s %s answered as %d %q, which is not pod %s", n.Name, addr, code, body, name)] = true
		return
	}
	heard := s.heard[at]
	switch is := slices.Index(heard, who[1]); {
	case is < 0:
		s.heard[at] = append(heard, who[1])
	case is < len(heard)-1:
		s.wrong[fmt.Sprintf("from node %s %s was answered by pod %s %s after a later one", n.Name, addr, name, who[1])] = true
	}
}

// reach returns nil once each of the pods is who answered last, from these nodes.
func (s *callers) reach(pods []sighting, from []*node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range from {
		for _, p := range pods {
			if heard := s.heard[way{n.Name, p.address()}]; len(heard) == 0 || heard[len(heard)-1] != string(p.UID) {
				return fmt.Errorf("from node %s %s was answered by pods %v, not yet by %s %s of node %s", n.Name, p.address(), heard, p.Name, p.UID, p.Spec.NodeName)
			}
		}
	}
	return nil
}
