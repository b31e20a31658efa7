package kube

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/enipool/enipool/test/lab"
)

// egress is the way from the API server to the kubelets, for `kubectl logs` and
// `exec`, and to pods, for its proxy: the API server is in the namespace of the test, which has no route to
// the nodes. It asks here, by CONNECT, and the connection is opened in the node's
// own namespace.
type egress struct {
	lab.Relay
	c      *Cluster
	config string // path of the API server's
}

const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

func openEgress(c *Cluster) (*egress, error) {
	socket := c.path("egress.sock")
	e := &egress{c: c, config: c.path("egress.yaml")}
	if err := os.WriteFile(e.config, fmt.Appendf(nil, egressConfig, socket), 0o600); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	e.Serve(l, e.connect)
	return e, nil
}

// connect answers one request and then passes on what both sides say.
func (e *egress) connect(client net.Conn) {
	said := bufio.NewReader(client)
	request, err := http.ReadRequest(said)
	if err != nil {
		return
	}
	server, err := e.dial(request.Host)
	if err != nil {
		_, _ = fmt.Fprintf(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n%v", err)
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		server.Close()
		return
	}
	e.Splice(client, said, server)
}

// dial opens a connection inside the node that has the address. Whatever else is not of this
// namespace is a pod's, which any node reaches.
func (e *egress) dial(address string) (conn net.Conn, err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dial := func() (err error) { conn, err = net.Dial("tcp", address); return err }
	if n := e.c.nodeAt(host); n != nil {
		return conn, n.Do(dial)
	}
	if n := e.c.anyNode(); n != nil && !net.ParseIP(host).IsLoopback() {
		return conn, n.Do(dial)
	}
	return conn, dial()
}

// anyNode returns a node, or nil where there is none.
func (c *Cluster) anyNode() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.nodes) == 0 {
		return nil
	}
	return c.nodes[0]
}
