package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/nlmsg"
	"github.com/enipool/enipool/test/e2e/watched"
	"golang.org/x/sys/unix"
)

// describe is the call in words, or nothing if it does not count.
func describe(c watched.Call) string {
	name := counted[c.Number]
	switch c.Number {
	case unix.SYS_OPENAT:
		file, err := c.Text(c.Args[1])
		if _, missing := os.Lstat(file); err == nil && missing == nil && c.Args[2]&unix.O_TRUNC == 0 {
			return "" // it is there
		}
		return name + " " + filepath.Base(file)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT:
		file, err := c.Text(c.Args[1])
		if err != nil {
			return name
		}
		return name + " " + filepath.Base(file)
	case unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_BPF, unix.SYS_MOUNT, unix.SYS_UMOUNT2:
		return name
	}
	file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", c.Thread, int32(c.Args[0])))
	switch {
	case err != nil, file == "anon_inode:[eventfd]":
		return ""
	case !strings.HasPrefix(file, "socket:["):
		return name + " " + filepath.Base(file)
	case c.Number == unix.SYS_WRITE, c.Number == unix.SYS_SENDTO, c.Number == unix.SYS_SENDMSG:
		return describeSent(c, name)
	}
	return name + " socket"
}

// describeSent is what goes through a socket.
func describeSent(c watched.Call, name string) string {
	b, _, memory, err := c.Sent()
	if err != nil {
		return name + " socket"
	}
	memory.Close()
	if strings.HasPrefix(string(b), "POST ") {
		_, body, _ := strings.Cut(string(b), "\r\n\r\n")
		return name + " request " + body
	}
	protocol, ok := c.Netlink()
	if !ok {
		return name + " socket"
	}
	var kinds []string
	watched.Messages(b, func(_ int, m nlmsg.Message) {
		if !asks(protocol, m.Kind) {
			kinds = append(kinds, fmt.Sprint(m.Kind))
		}
	})
	if len(kinds) == 0 {
		return ""
	}
	return fmt.Sprintf("%s netlink %d: %s", name, protocol, strings.Join(kinds, " "))
}

// asks tells whether a netlink message of the type only asks.
func asks(protocol int, kind uint16) bool {
	switch protocol {
	case unix.NETLINK_ROUTE: // of four types of an object the third one
		return kind >= unix.RTM_BASE && kind&3 == 2
	case unix.NETLINK_SOCK_DIAG:
		return kind == unix.SOCK_DIAG_BY_FAMILY
	case unix.NETLINK_NETFILTER:
		switch subsystem, message := kind>>8, kind&0xff; subsystem {
		case unix.NFNL_SUBSYS_NFTABLES:
			switch message {
			case unix.NFT_MSG_GETTABLE, unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_GETRULE, unix.NFT_MSG_GETSET, unix.NFT_MSG_GETSETELEM,
				unix.NFT_MSG_GETGEN, unix.NFT_MSG_GETOBJ, unix.NFT_MSG_GETFLOWTABLE:
				return true
			}
		case unix.NFNL_SUBSYS_CTNETLINK:
			return message == 1 // IPCTNL_MSG_CT_GET
		}
	}
	return false
}
