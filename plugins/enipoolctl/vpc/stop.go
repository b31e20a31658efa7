package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/enipool/enipool/pkg/config/lastgood"
)

// removeLeft removes what a server has left that was killed: its namespaces, if they are of this machine, and its files but the log.
func removeLeft(at *place) error {
	left, err := readServed(at)
	if err != nil {
		return err
	}
	var errs []error
	if left.PID != 0 && !left.Sandbox {
		for _, name := range append([]string{"vpc", "internet"}, left.Nodes...) {
			errs = append(errs, left.namespace(name).Remove())
		}
	}
	for _, name := range append([]string{"serve.json", "vpc.sock"}, left.Nodes...) {
		errs = append(errs, os.RemoveAll(at.pathOf(name)))
	}
	if lasting := lastgood.Lasting(at.folder); lasting != at.folder { // what agents keep over a reboot
		for _, name := range left.Nodes {
			errs = append(errs, os.RemoveAll(filepath.Join(lasting, name)))
		}
		_ = os.Remove(lasting) // it stays where something else is in it
	}
	return errors.Join(errs...)
}

// endTime is how long a server may take to remove all.
const endTime = 30 * time.Second

// stop ends the server, and waits until it has removed all. What a killed one has left it removes itself.
func stop(ctx context.Context, at *place, out io.Writer) error {
	told, is, err := at.serving()
	if err != nil {
		return err
	}
	if !is {
		if told.PID == 0 {
			fmt.Fprintf(out, "no VPC is served in %s\n", at.folder)
			return nil
		}
		if err := removeLeft(at); err != nil {
			return err
		}
		fmt.Fprintln(out, "the VPC's server was killed before: what it had left is removed")
		return nil
	}
	before, _ := os.ReadFile(at.logPath()) // of one in the foreground there is none
	if err := syscall.Kill(told.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end process %d, which serves the VPC: %w", told.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	for is {
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d, which serves the VPC, has not ended within %s: %s tells why, and after `kill -9 %d` this command removes what is left", told.PID, endTime, at.logPath(), told.PID)
		case <-time.After(50 * time.Millisecond):
		}
		if _, is, err = at.serving(); err != nil {
			return err
		}
	}
	if after, _ := os.ReadFile(at.logPath()); len(after) > len(before) {
		return fmt.Errorf("the VPC's server has ended, and told: %s", strings.TrimSpace(string(after[len(before):])))
	}
	fmt.Fprintln(out, "the VPC is removed")
	return nil
}
