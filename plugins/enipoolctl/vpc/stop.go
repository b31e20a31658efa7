package vpc

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

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
