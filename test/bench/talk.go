package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// server answers on a TCP port with what it gets, one connection after the other.
type server struct {
	listener int
	ended    chan error
}

// serve starts a server in the namespace. Client and server share a CPU: what is
// compared is the work for a transaction and not how fast an idle CPU wakes.
func serve(in space) (*server, error) {
	s := &server{ended: make(chan error, 1)}
	ready := make(chan error, 1)
	go func() {
		s.ended <- in.do(func() (err error) {
			s.listener, err = listen()
			ready <- err
			if err != nil {
				return err
			}
			for {
				c, _, err := unix.Accept(s.listener)
				if err != nil {
					return nil // stop woke it
				}
				echo(c)
			}
		})
	}()
	return s, <-ready
}

func listen() (int, error) {
	if err := pin(0, 1); err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open server: %w", err)
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: serverPort}), unix.Listen(fd, 128)); err != nil {
		return 0, errors.Join(fmt.Errorf("listen on port %d: %w", serverPort, err), unix.Close(fd))
	}
	return fd, nil
}

func echo(c int) {
	defer unix.Close(c)
	var one [1]byte
	for {
		if n, err := unix.Read(c, one[:]); n != 1 || err != nil {
			return // the client ends connections by a reset
		}
		if _, err := unix.Write(c, one[:]); err != nil {
			return
		}
	}
}

// stop ends the server; a client must have gone before.
func (s *server) stop() error {
	err := unix.Shutdown(s.listener, unix.SHUT_RDWR)
	return errors.Join(err, <-s.ended, unix.Close(s.listener))
}

// talkKind is what a client does again and again.
type talkKind struct{ what, unit, command string }

var (
	requests    = talkKind{"requests", "req/s", "TCP, 1 byte there and back in one connection, 1 CPU"}
	connections = talkKind{"connections", "conn/s", "TCP, connect, 1 byte there and back, reset, 1 CPU"}
)

// talk returns how often a second the client gets that done.
func talk(from space, kind talkKind, to netip.AddrPort, length time.Duration) (rate float64, err error) {
	err = from.do(func() error {
		if err := pin(0, 1); err != nil {
			return err
		}
		once := func() error { return connectOnce(to) }
		if kind == requests {
			c, err := connect(to)
			if err != nil {
				return err
			}
			defer unix.Close(c)
			once = func() error { return request(c) }
		}
		for start := time.Now(); time.Since(start) < length/5; { // until all is warm
			if err := once(); err != nil {
				return err
			}
		}
		start, n := time.Now(), 0
		for ; time.Since(start) < length; n++ {
			if err := once(); err != nil {
				return err
			}
		}
		rate = float64(n) / time.Since(start).Seconds()
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("%s to %s: %w", kind.what, to, err)
	}
	return rate, nil
}

func connectOnce(to netip.AddrPort) error {
	c, err := connect(to)
	if err != nil {
		return err
	}
	return errors.Join(request(c), unix.Close(c))
}

// connect opens a connection that Close resets: none is left in TIME_WAIT, where
// they would use up the ports.
func connect(to netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open client: %w", err)
	}
	// A timeout for sockets would let the Go runtime's signals interrupt calls.
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 5000),
		unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("connect: %w", err), unix.Close(fd))
	}
	return fd, nil
}

func request(c int) error {
	one := [1]byte{'x'}
	if _, err := unix.Write(c, one[:]); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if n, err := unix.Read(c, one[:]); n != 1 {
		return errors.Join(errors.New("receive: no answer"), err)
	}
	return nil
}
