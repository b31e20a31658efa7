package events

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// routeGroups are what is heard of NETLINK_ROUTE. One that the kernel does not have is not
// heard, and neither is a family that it does not have.
var routeGroups = [...]int{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_TC,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV6_NETCONF,
}

// roomForEvents is the receive buffer: some thousand events, or what another program
// does in a tenth of a second. More of them are an overflow.
const roomForEvents = 2 << 20

// socket hears one netlink family. What it hears waits in it until it is read, so that
// a flood costs no more than what is read of it.
type socket struct {
	file  *os.File
	raw   syscall.RawConn
	parse func([]byte) iter.Seq[Event]
	buf   []byte
}

// openSocket hears the groups of a family in the network namespace of the calling
// thread. It returns an error if it can hear none of them.
func openSocket(family int, parse func([]byte) iter.Seq[Event], groups ...int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, family)
	if err != nil {
		return nil, fmt.Errorf("open netlink family %d: %w", family, err)
	}
	if err := prepareSocket(fd, family, groups); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "netlink")
	raw, err := f.SyscallConn()
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("wait for netlink family %d: %w", family, err)
	}
	return &socket{file: f, raw: raw, parse: parse, buf: make([]byte, 64<<10)}, nil
}

func prepareSocket(fd, family int, groups []int) error {
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("bind netlink family %d: %w", family, err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomForEvents) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, roomForEvents) // as much as the system allows
	}
	if family == unix.NETLINK_ROUTE {
		if err := attachFilter(fd); err != nil {
			return err
		}
	}
	heard, errs := 0, []error(nil)
	for _, group := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
			errs = append(errs, fmt.Errorf("listen to group %d of netlink family %d: %w", group, family, err))
			continue
		}
		heard++
	}
	if heard == 0 {
		return errors.Join(errs...)
	}
	return nil
}

// waitAndRead reads as readDatagrams does, once there is something. It returns with an error
// once the socket is closed.
func (s *socket) waitAndRead(lock sync.Locker, most int, tell func(Event)) error {
	var err error
	readErr := s.raw.Read(func(fd uintptr) bool {
		lock.Lock()
		defer lock.Unlock()
		var got int
		got, err = s.readDatagrams(int(fd), most, tell)
		return got > 0 || err != nil
	})
	return errors.Join(readErr, err)
}

// readWaiting passes on what waits, at most that number of datagrams.
func (s *socket) readWaiting(most int, tell func(Event)) error {
	var err error
	controlErr := s.raw.Control(func(fd uintptr) { _, err = s.readDatagrams(int(fd), most, tell) })
	return errors.Join(controlErr, err)
}

func (s *socket) readDatagrams(fd, most int, tell func(Event)) (got int, err error) {
	// What was lost counts as a datagram, too: else a flood would keep the lock.
	for ; got < most; got++ {
		n, _, err := unix.Recvfrom(fd, s.buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			return got, nil
		case errors.Is(err, unix.ENOBUFS), err == nil && n > len(s.buf):
			tell(Event{Kind: Overflow})
		case err != nil:
			return got, fmt.Errorf("read netlink: %w", err)
		default:
			for e := range s.parse(s.buf[:n]) {
				tell(e)
			}
		}
	}
	return got, nil
}
