package iptexec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/enipool/enipool/pkg/eni"
	"golang.org/x/sys/unix"
)

// The kernel makes the tables of iptables-legacy when somebody asks for them first, by a
// program or by a question to the kernel. They stay, and whoever counts on nftables
// then wonders who needs them. So nothing here asks before the kernel has the table.

// mayHaveLegacyTable tells whether the kernel has a nat table of iptables-legacy.
func mayHaveLegacyTable(f eni.Family) (bool, error) {
	names := "ip_tables_names"
	if f == eni.IPv6 {
		names = "ip6_tables_names"
	}
	tables, err := os.ReadFile(filepath.Join("/proc/thread-self/net", names))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list tables of iptables-legacy: %w", err)
	}
	return slices.Contains(strings.Fields(string(tables)), "nat"), nil
}

// isLegacy tells whether the program works on the tables of iptables-legacy. Mostly the
// file that it is a link to says so, else its version.
func isLegacy(path string) bool {
	if file, err := filepath.EvalSymlinks(path); err == nil {
		switch name := filepath.Base(file); {
		case strings.Contains(name, "-legacy"):
			return true
		case strings.Contains(name, "-nft"):
			return false
		}
	}
	version, err := runProgram(path, []string{"--version"}, "", 0)
	return err == nil && !strings.Contains(version, "nf_tables")
}

// NoLegacyChain tells whether the nat table of iptables-legacy has no such chain, for
// certain. The kernel is asked: the program may not be on this node, or not in this
// process's PATH.
func NoLegacyChain(f eni.Family, chain string) bool {
	may, err := mayHaveLegacyTable(f)
	if err != nil || !may {
		return err == nil
	}
	entries, err := legacyNat(f)
	// A chain begins with an entry that has its name.
	return err == nil && !bytes.Contains(entries, []byte("\x00"+chain+"\x00"))
}

// Questions of <linux/netfilter_ipv4/ip_tables.h>; those about IPv6 have the same numbers.
const (
	getInfo, getEntries = 64, 65
	tableNameSize       = 32
)

// tableInfo is struct ipt_getinfo.
type tableInfo struct {
	name                 [tableNameSize]byte
	hooks                uint32
	entry, underflow     [5]uint32
	entries, entriesSize uint32
}

// legacyNat returns the entries of the nat table as the kernel has them.
func legacyNat(f eni.Family) ([]byte, error) {
	family, level := unix.AF_INET, unix.IPPROTO_IP
	if f == eni.IPv6 {
		family, level = unix.AF_INET6, unix.IPPROTO_IPV6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	for {
		var info tableInfo
		copy(info.name[:], "nat")
		if err := askKernel(fd, level, getInfo, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
			return nil, err
		}
		const head = tableNameSize + 8 // struct ipt_get_entries
		answer := make([]byte, head+int(info.entriesSize))
		copy(answer, "nat")
		binary.NativeEndian.PutUint32(answer[tableNameSize:], info.entriesSize)
		err := askKernel(fd, level, getEntries, unsafe.Pointer(&answer[0]), uintptr(len(answer)))
		if errors.Is(err, unix.EAGAIN) {
			continue // it was changed in between
		}
		return answer[head:], err
	}
}

func askKernel(fd, level int, question uintptr, answer unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), question, uintptr(answer), uintptr(unsafe.Pointer(&length)), 0)
	runtime.KeepAlive(answer)
	if errno != 0 {
		return errno
	}
	return nil
}
