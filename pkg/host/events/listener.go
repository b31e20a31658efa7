package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// burstPause is how long the listener waits after it has read what was there: changes come in
// bursts, and one wake for all of them costs less than one for each.
const burstPause = 20 * time.Millisecond

// socketKinds is how many sockets there are where the kernel announces all: of NETLINK_ROUTE and of nftables.
const socketKinds = 2

// maxDatagrams is how many datagrams are read in a row, so that a flood does not keep others from
// their turn. What does not fit the socket's buffer meanwhile is an overflow.
const maxDatagrams = 4096

// Listener hears what changes in a network namespace.
type Listener struct {
	mu      sync.Mutex // one reads at a time; it guards what follows
	sockets []*socket
	lost    bool // one of them can't be read any more
	tell    func(Event)
}

// Listen begins to hear what changes in the network namespace of the calling thread,
// from now on. tell is called for each change, for one at a time, and must not block.
// What the kernel does not have, such as nftables, is not heard; the log says so.
func Listen(tell func(Event), log *slog.Logger) (*Listener, error) {
	return listenWith(tell, unix.NETLINK_NETFILTER, log)
}

// listenWith is Listen with the netlink family that announces nftables.
func listenWith(tell func(Event), filters int, log *slog.Logger) (*Listener, error) {
	listener := &Listener{tell: tell}
	route, err := openSocket(unix.NETLINK_ROUTE, ParseRoute, routeGroups[:]...)
	if err != nil {
		return nil, err
	}
	listener.sockets = append(listener.sockets, route)
	filter, err := openSocket(filters, ParseNft, unix.NFNLGRP_NFTABLES)
	if err != nil {
		log.Info("changes of nftables can't be heard; they are found by the periodic comparison", "error", err)
		return listener, nil
	}
	listener.sockets = append(listener.sockets, filter)
	return listener, nil
}

// HearsAll tells whether all is heard that a kernel can announce: routes, links and the like, and nftables.
func (l *Listener) HearsAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.sockets) == socketKinds && !l.lost
}

// Run reads what changes until ctx ends, and closes the listener then.
func (l *Listener) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, l.closeSockets)
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, len(l.sockets))
	for i, s := range l.sockets {
		all.Go(func() {
			errs[i] = l.followSocket(ctx, s)
			l.mu.Lock()
			l.lost = true
			l.mu.Unlock()
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(errs...)
}

func (l *Listener) followSocket(ctx context.Context, s *socket) error {
	for {
		if err := s.waitAndRead(&l.mu, maxDatagrams, l.tell); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(burstPause):
		}
	}
}

// Catch tells all that has changed before it was called. The kernel announces a change
// before whoever made it goes on, so what the caller did before is told by then.
func (l *Listener) Catch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sockets {
		_ = s.readWaiting(maxDatagrams, l.tell) // Run meets the same error, and ends by it
	}
}

func (l *Listener) closeSockets() {
	for _, s := range l.sockets {
		_ = s.file.Close()
	}
}
