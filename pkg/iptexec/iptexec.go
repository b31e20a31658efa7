// Package iptexec runs the few programs that the plugin needs, above all iptables: one that
// changes several rules all at once, and one that lists some. It does without
// os/exec, which the plugin must not link.
package iptexec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/enipool/enipool/pkg/eni"
	"golang.org/x/sys/unix"
)

// programNames returns the names that a program of iptables may have on a node. Which
// of them works on the tables that are in use is seen by trying: the agent may
// bring another iptables along than the node has.
func programNames(f eni.Family, suffix string) []string {
	name := "iptables"
	if f == eni.IPv6 {
		name = "ip6tables"
	}
	return []string{name + suffix, name + "-nft" + suffix, name + "-legacy" + suffix}
}

// Restore hands the rules to the first iptables-restore that accepts them; chains
// that they do not name stay as they are. The program inherits lock.
func Restore(f eni.Family, rules string, lock uintptr) error {
	return tryVariants(f, "-restore", func(path string) error { return RestoreBy(path, rules, lock) })
}

// Rules returns the rules of a chain of the nat table as iptables prints them,
// without "-A CHAIN ". To look makes no table.
func Rules(f eni.Family, chain string) ([]string, error) {
	var rules []string
	err := tryVariants(f, "", func(path string) error {
		out, err := runProgram(path, []string{"--wait", "5", "-t", "nat", "-S", chain}, "", 0)
		for line := range strings.Lines(out) {
			if rule, ok := strings.CutPrefix(strings.TrimSpace(line), "-A "+chain+" "); ok && err == nil {
				rules = append(rules, rule)
			}
		}
		return err
	})
	return rules, err
}

// tryVariants tries one variant after the other until one does it. The legacy one is left out
// where it has no nat table: then no chain of ours is there, and its program would make the table.
func tryVariants(f eni.Family, suffix string, do func(path string) error) error {
	may, err := mayHaveLegacyTable(f)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range programNames(f, suffix) {
		path, err := findProgram(name)
		// Not even to list: when the program asks for the table, the kernel makes it.
		if err == nil && !may && isLegacy(path) {
			err = fmt.Errorf("%s is iptables-legacy, which has no table nat", path)
		}
		if err == nil {
			err = do(path)
		}
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// findProgram returns the path of the program: in PATH or where systems keep it, which
// the PATH of a service often lacks.
func findProgram(name string) (string, error) {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin", "/usr/bin", "/bin") {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(path) && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: not in PATH: install the package iptables, or use firewall nftables", name)
}

// RestoreBy is Restore by the program at the path.
func RestoreBy(path, rules string, lock uintptr) error {
	_, err := runProgram(path, []string{"--noflush", "--wait", "5"}, rules, lock)
	return err
}

// Run starts the program with this process's environment and returns what it printed.
func Run(path string, args []string, input string) (string, error) {
	return runProgram(path, args, input, 0)
}

// runProgram starts the program and returns what it printed. It inherits lock, if that
// is not 0: so it holds the lock on, even if this process is killed.
func runProgram(path string, args []string, input string, lock uintptr) (out string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("run %s: %w", path, err)
		}
	}()
	// Files, not pipes: nobody reads while Wait4 waits, and a program that has filled a pipe
	// would wait for its reader for good.
	var files []uintptr
	for _, text := range []string{input, "", ""} {
		fd, err := memoryFile(text)
		if err != nil {
			return "", err
		}
		defer unix.Close(fd)
		files = append(files, uintptr(fd))
	}
	if lock != 0 {
		files = append(files, lock)
	}
	pid, err := syscall.ForkExec(path, append([]string{filepath.Base(path)}, args...), &syscall.ProcAttr{Files: files, Env: os.Environ()})
	if err != nil {
		return "", err
	}
	var status unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err == nil && status != 0 {
		err = fmt.Errorf("%s %s", endText(status), strings.Join(strings.Fields(readContents(files[2])), " "))
	}
	return readContents(files[1]), err
}

// endText says how a program ended: one that is killed, for want of memory mostly, has no
// exit status.
func endText(status unix.WaitStatus) string {
	if status.Signaled() {
		return "killed by signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

func readContents(fd uintptr) string {
	var text []byte
	for buffer := make([]byte, 8192); ; {
		n, err := unix.Pread(int(fd), buffer, int64(len(text)))
		if n <= 0 || err != nil {
			return string(text)
		}
		text = append(text, buffer[:n]...)
	}
}

// memoryFile returns a file that holds the text and is read from its start.
func memoryFile(text string) (fd int, err error) {
	if fd, err = unix.MemfdCreate("iptables", unix.MFD_CLOEXEC); err != nil {
		return fd, err
	}
	// By its place: the file's position stays at the start, where the program begins to read.
	n, err := unix.Pwrite(fd, []byte(text), 0)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("write %d bytes for a program to read: %w", len(text), err)
	}
	return fd, nil
}
