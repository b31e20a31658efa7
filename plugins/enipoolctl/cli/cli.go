// Package cli holds what the commands of enipoolctl share: exit codes, commands that only
// group others, how flags are checked and how results are printed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// ExitError ends the program with a code. The command has printed all there is to say.
type ExitError struct{ Code int }

// Error is never printed.
func (e *ExitError) Error() string { return fmt.Sprintf("exit %d", e.Code) }

// Run runs the program and returns its exit code: 0 for success, 1 if a command found something
// wrong, 2 if it failed.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintf(stderr, "enipoolctl: %v\n", err)
	return 2
}

// Group makes the command one that only has others below it: cobra by itself prints help
// and succeeds where a word is no command.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for %q; see %s --help", args[0], cmd.CommandPath(), cmd.CommandPath())
		}
		return cmd.Help()
	}
	cmd.AddCommand(below...)
	return cmd
}

// OneNode are the arguments of a command that is about one node.
func OneNode(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one node: %s NODE", cmd.CommandPath())
	}
	return nil
}
