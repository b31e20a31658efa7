// Package watched runs a program whose system calls of chosen kinds wait for an answer: a
// seccomp filter, which all its threads and children have, tells another process of each.
package watched

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Talk and Hear are the files by which child and parent agree, numbers that no program of
// the tests gets to. A filter must not watch what is written to them.
const (
	Talk = 900
	Hear = 901
)

// stage tells the child from its parent.
const stage = "WATCHED_STAGE"

// Watch is how a program is watched.
type Watch struct {
	Prepare func() error                 // the child calls it before it is watched and becomes the program
	Filter  []unix.SockFilter            // says Notify to what is watched
	Program []string                     // its command line
	Started func(*os.Process)            // may be nil; the program has not made a call yet
	Judge   func(Call) (verdict Verdict) // of each call, one after the other
}

// Main runs the program in a child of this process, which is this program once more, and
// exits with the program's exit code.
func Main(w Watch) {
	runtime.LockOSThread()
	var code int
	var err error
	if os.Getenv(stage) == "" {
		code, err = w.parent()
	} else {
		err = w.child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "watched:", err)
		code = 125
	}
	os.Exit(code)
}

// parent starts the child, answers what the kernel asks about its calls, and returns its
// exit code.
func (w Watch) parent() (int, error) {
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
	if w.Started != nil {
		w.Started(cmd.Process)
	}
	go supervise(listener, w.Judge)
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

// child prepares itself, has its calls watched and becomes the program. The filter may not
// be sent by a message: that could be the first call that is watched.
func (w Watch) child() error {
	if w.Prepare != nil {
		if err := w.Prepare(); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(w.Program[0])
	if err != nil {
		return err
	}
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, stage+"=") {
			env = append(env, pair)
		}
	}
	for from, to := range map[int]int{3: Talk, 4: Hear} {
		if err := unix.Dup3(from, to, unix.O_CLOEXEC); err != nil {
			return err
		}
		unix.CloseOnExec(from)
	}
	listener, err := install(w.Filter)
	if err != nil {
		return err
	}
	if _, err := unix.Write(Talk, []byte(strconv.Itoa(listener))); err != nil {
		return err
	}
	if _, err := unix.Read(Hear, make([]byte, 2)); err != nil {
		return err
	}
	unix.CloseOnExec(listener)
	return unix.Exec(path, w.Program, env)
}

// forward hands the signals that end us to the program.
func forward(p *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	go func() {
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
}
