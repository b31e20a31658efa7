package cluster

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/isolate/sandbox"
	"github.com/enipool/enipool/test/lab"
)

// listening says in the environment of this program that it has sockets which listen outside of its namespaces.
const listening = "ENIPOOL_KEPT_PAGES"

// keptPage is a page of a cluster that is kept up, for browsers of the machine.
type keptPage struct {
	of, node string
	address  string // on the node's loopback
}

func keptPages() []keptPage {
	const agent, operator = "127.0.0.1:9809", "127.0.0.1:9810"
	return []keptPage{{"the agent", "node-1", agent}, {"the agent", "node-2", agent}, {"the operator", "node-1", operator}, {"the operator", "node-2", operator}}
}

// listenForBrowsers listens on the machine's own loopback, at free ports, if a cluster is to be kept up. Namespaces that are made
// afterwards have another loopback.
func listenForBrowsers() (files []*os.File, err error) {
	keep := slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasPrefix(arg, "-keep=") })
	if !keep || os.Getenv(listening) != "" {
		return nil, nil
	}
	for range keptPages() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen for browsers: %w", err)
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return nil, fmt.Errorf("listen for browsers: %w", err)
		}
		files = append(files, file)
	}
	return files, os.Setenv(listening, "yes")
}

// showPages serves the pages of the nodes at the sockets outside, until the test ends, and returns a line for each with its URL.
func (c *cluster) showPages() (lines string) {
	c.t.Helper()
	way := new(lab.Relay)
	c.t.Cleanup(way.Close)
	for i, page := range keptPages() {
		file := os.NewFile(uintptr(sandbox.FirstFile+i), "page")
		l, err := net.FileListener(file)
		c.must(err)
		c.must(file.Close()) // the listener has its own
		n := c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.Name == page.node })]
		way.BringOut(l, n.Do, page.address)
		lines += fmt.Sprintf("  http://%s/  %s on %s\n", l.Addr(), page.of, page.node)
	}
	return lines
}
