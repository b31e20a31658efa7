// Package cli holds what the commands of enipoolctl share: exit codes, commands that only
// group others, how flags are checked and how results are printed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExitCodes is what all commands go by, as the help of the program says it.
const ExitCodes = `Exit codes of all commands:
  0  it is done, and nothing is wrong
  1  it is done, and something is wrong, is left out or does not fit: each command
     that can say so tells when
  2  it failed: a wrong flag, or something that can't be read, reached or changed`

// Programs is what all commands go by that print for programs, as the help of the program says it.
const Programs = `What is printed with -o json or -o yaml is for programs, and begins with the version
of its format. Within one version names keep their meaning: new ones may come, and
none goes. Tables and texts are for people and may change with each release; they are
in colour on a terminal unless NO_COLOR is set.`

// ExitError ends the program with a code. The command has printed all there is to say.
type ExitError struct{ Code int }

// Error is never printed.
func (e *ExitError) Error() string { return fmt.Sprintf("exit %d", e.Code) }

// Run runs the program and returns its exit code: see ExitCodes.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		// What was being read when Ctrl-C came is no news.
		fmt.Fprintln(stderr, "enipoolctl: interrupted")
		return 2
	}
	fmt.Fprintf(stderr, "enipoolctl: %s\n", told(ran, err))
	return 2
}

// told is the error of a command, with what to do about those of the library for commands, which
// has no type for them.
func told(cmd *cobra.Command, err error) string {
	text := err.Error()
	switch {
	case strings.HasPrefix(text, "unknown command") && !cmd.HasSubCommands() && cmd.Flags().NArg() > 0:
		return config.StrayArgument(cmd.CommandPath(), cmd.Flags().Arg(0)).Error()
	case strings.HasPrefix(text, "required flag(s)"):
		return text + "; see " + cmd.CommandPath() + " --help"
	}
	return text + meantFlag(cmd, err)
}

// meantFlag names the flag of a command that an unknown one most likely means.
func meantFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if meant := config.Meant(unknown.GetSpecifiedName(), names); meant != "" {
		return "; did you mean --" + meant + "?"
	}
	return "; see " + cmd.CommandPath() + " --help"
}

// Group makes the command one that only has others below it: cobra by itself prints help
// and succeeds where a word is no command.
func Group(cmd *cobra.Command, below ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for %q; %s", args[0], cmd.CommandPath(), meantCommand(cmd, args[0]))
		}
		return cmd.Help()
	}
	cmd.AddCommand(below...)
	return cmd
}

// meantCommand says which command an unknown word most likely means, or where to look.
func meantCommand(cmd *cobra.Command, word string) string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if meant := config.Meant(word, names); meant != "" {
		return fmt.Sprintf("did you mean %s %s?", cmd.CommandPath(), meant)
	}
	return fmt.Sprintf("see %s --help", cmd.CommandPath())
}

// OneNode are the arguments of a command that is about one node.
func OneNode(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one node: %s NODE", cmd.CommandPath())
	}
	return nil
}
