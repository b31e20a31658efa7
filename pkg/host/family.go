package host

import (
	"errors"

	"golang.org/x/sys/unix"
)

// HasIPv6 tells whether the kernel has the address family at all: one that was
// booted with ipv6.disable=1 does not.
func HasIPv6() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return !noFamily(err)
	}
	unix.Close(fd)
	return true
}

// noFamily tells whether err says that the kernel has no such address family. What
// it holds of that family is then nothing.
func noFamily(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP)
}
