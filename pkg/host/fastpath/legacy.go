package fastpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// legacyTables returns the tables of the older iptables of the network namespace
// that could decide about a packet, without nat. A table stays registered after a
// mere `iptables-legacy -L`: one that has no rules and accepts everything does not
// count.
func legacyTables() ([]string, error) {
	text, err := os.ReadFile("/proc/thread-self/net/ip_tables_names")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list tables of iptables-legacy: %w", err)
	}
	names := slices.DeleteFunc(strings.Fields(string(text)), func(t string) bool { return t == "nat" })
	if len(names) == 0 {
		return nil, nil
	}
	// The kernel answers questions about the tables at any socket of IPv4.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket to read iptables-legacy: %w", err)
	}
	defer unix.Close(fd)
	var tables []string
	for _, name := range names {
		idle, err := acceptsAll(fd, name)
		if err != nil {
			return nil, fmt.Errorf("read table %s of iptables-legacy: %w", name, err)
		}
		if !idle {
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	return tables, nil
}

// Questions and answers of <linux/netfilter_ipv4/ip_tables.h>.
const (
	iptGetInfo, iptGetEntries = 64, 65 // IPT_SO_GET_INFO and _ENTRIES
	iptNameSize               = 32
	iptEntrySize              = 112 // struct ipt_entry without matches and target
	iptTargetSize             = 32  // struct xt_entry_target, before the verdict
	iptAccepts                = -nfAccept - 1
)

// iptInfo is struct ipt_getinfo.
type iptInfo struct {
	name                 [iptNameSize]byte
	hooks                uint32
	entry, underflow     [5]uint32 // of each hook: its first rule, its policy
	entries, entriesSize uint32
}

// acceptsAll tells whether the table has nothing but policies, all of which accept.
func acceptsAll(fd int, table string) (bool, error) {
	var info iptInfo
	copy(info.name[:iptNameSize-1], table)
	if err := askTables(fd, iptGetInfo, unsafe.Pointer(&info), unsafe.Sizeof(info)); err != nil {
		return false, err
	}
	// Each hook has its policy, and all have an end in common. Every chain and rule
	// is one entry more.
	if int(info.entries) != bits.OnesCount32(info.hooks)+1 {
		return false, nil
	}
	const head = iptNameSize + 8 // struct ipt_get_entries
	answer := make([]byte, head+int(info.entriesSize))
	copy(answer[:iptNameSize-1], table)
	binary.NativeEndian.PutUint32(answer[iptNameSize:], info.entriesSize)
	err := askTables(fd, iptGetEntries, unsafe.Pointer(&answer[0]), uintptr(len(answer)))
	if errors.Is(err, unix.EAGAIN) {
		return false, nil // it has just become longer
	}
	if err != nil {
		return false, err
	}
	for hook, at := range info.underflow {
		if info.hooks>>hook&1 == 0 {
			continue
		}
		verdict := head + int(at) + iptEntrySize + iptTargetSize
		if verdict+4 > len(answer) || int32(binary.NativeEndian.Uint32(answer[verdict:])) != iptAccepts {
			return false, nil
		}
	}
	return true, nil
}

func askTables(fd int, question uintptr, answer unsafe.Pointer, size uintptr) error {
	length := uint32(size)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, question, uintptr(answer), uintptr(unsafe.Pointer(&length)), 0)
	runtime.KeepAlive(answer)
	if errno != 0 {
		return errno
	}
	return nil
}
