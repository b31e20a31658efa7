package vpc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// startTime is how long a server in the background may take to be there.
const startTime = 20 * time.Second

// detach starts the server in the background, and returns when it serves.
func detach(ctx context.Context, at *place) error {
	log, err := prepare(at)
	if err != nil {
		return err
	}
	defer log.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return a == "--detach" || a == "--detach=true" })...)
	cmd.Args[0] = os.Args[0] // what it prints has the name by which people call it
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return awaitServer(ctx, at, cmd.Process, ended)
}

// prepare removes what a killed server has left, and opens the log of the next.
func prepare(at *place) (log *os.File, err error) {
	lock, err := at.takeLock()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(removeLeft(at), lock.Close()); err != nil {
		return nil, fmt.Errorf("remove what a killed server has left: %w", err)
	}
	return os.Create(at.logPath())
}

// awaitServer returns when the server in the background serves, and prints what it has told; one that takes too long is ended.
func awaitServer(ctx context.Context, at *place, server *os.Process, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		told, err := readServed(at)
		if err != nil {
			return err
		}
		output, err := os.ReadFile(at.logPath())
		if err != nil {
			return err
		}
		if told.Ready {
			fmt.Print(string(output))
			return nil
		}
		select {
		case <-ended:
			fmt.Fprint(os.Stderr, string(output))
			return &cli.ExitError{Code: 2}
		case <-ctx.Done():
			_ = server.Signal(syscall.SIGTERM) // it may have ended
			return fmt.Errorf("no VPC is served within %s, so its server is ended; %s has what it told", startTime, at.logPath())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
