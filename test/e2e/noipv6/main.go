// Command noipv6 runs a program as on a kernel that was booted with ipv6.disable=1:
//
//	noipv6 PROGRAM ARGUMENT...
//
// There is no socket of the family AF_INET6, no /proc/sys/net/ipv6, and rtnetlink
// knows no handler for the family: it refuses to change or to ask, and answers to a
// dump with what IPv4 has, where it is not about rules. A program of the test takes
// each request that the program sends, see supervise.go. What it can't imitate is the
// packet filter of such a kernel.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stage tells the child from its parent.
const stage = "NOIPV6_STAGE"

func main() {
	runtime.LockOSThread()
	var code int
	var err error
	if os.Getenv(stage) == "" {
		code, err = parent()
	} else {
		err = child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "noipv6:", err)
		code = 125
	}
	os.Exit(code)
}

// parent starts the child, answers what the kernel asks about its requests, and
// returns its exit code.
func parent() (int, error) {
	fromChild, toParent, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	fromParent, toChild, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), stage+"=child")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{toParent, fromParent} // 3 and 4
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	forward(cmd.Process)
	toParent.Close()
	number := make([]byte, 16)
	n, err := fromChild.Read(number)
	if err != nil {
		return 0, errors.Join(errors.New("the child says nothing"), cmd.Wait())
	}
	listener, err := takeFile(cmd.Process.Pid, string(number[:n]))
	if err != nil {
		return 0, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go supervise(listener)
	if _, err := toChild.Write([]byte("go")); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// takeFile takes the file that has the number in another process.
func takeFile(pid int, number string) (int, error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return 0, err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(process)
	taken, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return 0, fmt.Errorf("take file %d of process %d: %w", fd, pid, err)
	}
	return taken, nil
}

// child hides IPv6, has its requests watched and becomes the program. The filter may
// not be sent by a message: that would be the first request that is watched.
func child() error {
	if err := hide(); err != nil {
		return err
	}
	listener, err := filter()
	if err != nil {
		return err
	}
	if _, err := unix.Write(3, []byte(strconv.Itoa(listener))); err != nil {
		return err
	}
	if _, err := unix.Read(4, make([]byte, 2)); err != nil {
		return err
	}
	for _, fd := range []int{3, 4, listener} {
		unix.CloseOnExec(fd)
	}
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, stage+"=") {
			env = append(env, pair)
		}
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return err
	}
	return unix.Exec(path, os.Args[1:], env)
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
