package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

// Ctrl-C while something is read is no fault of what was read.
func TestWhoInterruptsIsNotToldOfWhatWasBeingRead(t *testing.T) {
	for _, pressed := range []bool{true, false} {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		cmd := &cobra.Command{Use: "enipoolctl", RunE: func(cmd *cobra.Command, _ []string) error {
			if pressed {
				stop()
			}
			return fmt.Errorf("read nodes: %w", context.Canceled)
		}}
		var stderr bytes.Buffer
		code := Run(ctx, cmd, nil, &bytes.Buffer{}, &stderr)
		want := "enipoolctl: read nodes: context canceled\n"
		if pressed {
			want = "enipoolctl: interrupted\n"
		}
		if code != 2 || stderr.String() != want {
			t.Errorf("Ctrl-C was pressed: %v: exit code %d and %q, want 2 and %q", pressed, code, stderr.String(), want)
		}
	}
}
