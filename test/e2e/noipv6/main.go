// Command noipv6 runs a program as on a kernel that was booted with ipv6.disable=1:
//
//	noipv6 PROGRAM ARGUMENT...
//
// There is no socket of the family AF_INET6, no /proc/sys/net/ipv6, and rtnetlink
// knows no handler for the family: it refuses to change or to ask, and answers to a
// dump with what IPv4 has, where it is not about rules. A program of the test takes
// each request that the program sends, see judge.go. What it can't imitate is the
// packet filter of such a kernel.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/test/e2e/watched"
	"golang.org/x/sys/unix"
)

func main() {
	watched.Main(watched.Watch{Prepare: hide, Filter: filter(), Program: os.Args[1:], Judge: judge})
}

// hide puts in place of /proc/sys/net one without ipv6. Namespaces that others make
// later are still seen.
func hide() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("make mounts slaves: %w", err)
	}
	const dir = "/proc/sys/net"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	kept := map[string]int{}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "ipv6" {
			if kept[e.Name()], err = unix.Open(filepath.Join(dir, e.Name()), unix.O_PATH|unix.O_CLOEXEC, 0); err != nil {
				return err
			}
		}
	}
	if err := unix.Mount("noipv6", dir, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount over %s: %w", dir, err)
	}
	for name, fd := range kept {
		to := filepath.Join(dir, name)
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", to, err)
		}
	}
	return nil
}
