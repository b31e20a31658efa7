package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"
)

// echo is a pod on a node that says what it is told.
const echo = `---
apiVersion: v1
kind: Pod
metadata: {name: echo, labels: {app: echo}}
spec:
  nodeName: %s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers: [{name: echo, image: localhost/busybox:1, command: [nc, -ll, -p, "7", -e, cat]}]
`

// line is a connection that stays open.
type line struct {
	net.Conn
	c    *cluster
	says *bufio.Reader
}

// dialEcho connects a node to the pod.
func (c *cluster) dialEcho(from *node) *line {
	c.t.Helper()
	l := &line{c: c}
	c.Eventually("the pod that echoes answers", func() error {
		for _, p := range c.pods.now() {
			if p.Name == "echo" && p.Status.PodIP != "" {
				return from.Do(func() (err error) { l.Conn, err = net.Dial("tcp", p.Status.PodIP+":7"); return err })
			}
		}
		return errors.New("it has no address")
	})
	l.says = bufio.NewReader(l.Conn)
	c.t.Cleanup(func() { l.Close() })
	l.lives("at first")
	return l
}

// lives checks that what is said comes back.
func (l *line) lives(when string) {
	l.c.t.Helper()
	l.c.must(l.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := fmt.Fprintln(l, when); err != nil {
		l.c.t.Fatalf("the connection %s: %v", when, err)
	}
	if heard, err := l.says.ReadString('\n'); err != nil || heard != when+"\n" {
		l.c.t.Fatalf("the connection %s: %q, %v", when, heard, err)
	}
}
