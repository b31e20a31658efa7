package demo

import (
	"context"
	"io"
	"net"
	"sync"
)

// agentPages is where each agent serves its pages, in its node's network.
const agentPages = "127.0.0.1:9809"

// showPages brings the agents' pages out of the sandbox, until the function that it returns is called.
func (d *demo) showPages(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var under sync.WaitGroup
	for i, l := range d.pages {
		under.Go(func() {
			defer context.AfterFunc(ctx, func() { l.Close() })()
			for {
				conn, err := l.Accept()
				if err != nil {
					return // it was closed
				}
				under.Go(func() { d.nodes[i].bringOut(ctx, conn) })
			}
		})
	}
	return func() {
		cancel()
		under.Wait()
	}
}

// bringOut passes a connection on to the node's agent. While none runs, a browser gets no answer.
func (n *labNode) bringOut(ctx context.Context, outside net.Conn) {
	defer outside.Close()
	var inside net.Conn
	err := n.ns.Do(func() (err error) {
		inside, err = new(net.Dialer).DialContext(ctx, "tcp", agentPages)
		return err
	})
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { outside.Close(); inside.Close() })()
	var under sync.WaitGroup
	under.Go(func() { pass(inside, outside) })
	pass(outside, inside)
	under.Wait()
}

// pass copies until either side ends, and ends both then: nothing more follows an answer.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // why a browser or an agent is gone is nobody's question here
	to.Close()
	from.Close()
}
