package main

import (
	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/enipool/enipool/test/e2e/watched"
	"golang.org/x/sys/unix"
)

// filter refuses sockets of IPv6 and has what is sent looked at.
func filter() []unix.SockFilter {
	return []unix.SockFilter{
		watched.Load(),
		watched.Jump(unix.BPF_JEQ, unix.SYS_SOCKET, 0, 3),
		watched.LoadArgument(0),
		watched.Jump(unix.BPF_JEQ, unix.AF_INET6, 0, 2),
		watched.Refuse(unix.EAFNOSUPPORT),
		watched.Jump(unix.BPF_JEQ, unix.SYS_SENDTO, 1, 0),
		watched.Jump(unix.BPF_JEQ, unix.SYS_SENDMSG, 0, 1),
		watched.Notify(),
		watched.Allow(),
	}
}

// judge refuses with the error that the kernel would answer with. A dump is made one of
// IPv4, in the program's memory.
func judge(c watched.Call) (v watched.Verdict) {
	b, at, memory, err := c.Sent()
	if err != nil {
		return v
	}
	defer memory.Close()
	if protocol, ok := c.Netlink(); !ok || protocol != unix.NETLINK_ROUTE {
		return v
	}
	watched.Messages(b, func(start int, m nlmsg.Message) {
		if v.Errno != 0 || len(m.Body) == 0 || m.Body[0] != unix.AF_INET6 {
			return
		}
		kind := m.Kind
		switch dumps := m.Flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP; {
		case kind >= unix.RTM_NEWRULE && kind <= unix.RTM_GETRULE, kind == unix.RTM_NEWNEIGH, kind == unix.RTM_DELNEIGH:
			v.Errno = unix.EAFNOSUPPORT
		case !dumps && kind >= unix.RTM_NEWADDR && kind <= unix.RTM_GETROUTE:
			v.Errno = unix.EOPNOTSUPP
		case dumps && (kind == unix.RTM_GETADDR || kind == unix.RTM_GETROUTE):
			_, _ = memory.WriteAt([]byte{unix.AF_INET}, at+int64(start)+nlmsg.HeaderSize)
		}
	})
	return v
}
