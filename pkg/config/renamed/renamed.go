// Package renamed keeps old spellings of commands and flags working for scripts that use them. A
// line on stderr names the new one.
//
// cobra and pflag can nearly do it, but cobra prints what is deprecated to where SetOut points,
// among a command's results, and pflag's deprecated flag is a flag of its own: which flags are
// required and which were typed would then be asked of both spellings.
package renamed

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Flag lets the flag of cmd be typed as it was called before: both spellings are one flag.
func Flag(cmd *cobra.Command, old, now string) {
	flags, warned := cmd.Flags(), false
	earlier := flags.GetNormalizeFunc()
	flags.SetNormalizeFunc(func(set *pflag.FlagSet, name string) pflag.NormalizedName {
		if name != old {
			return earlier(set, name)
		}
		// pflag calls this each time that it meets the name, and a person needs one line.
		if !warned {
			warned = true
			warn(cmd, "--"+old, "--"+now)
		}
		return pflag.NormalizedName(now)
	})
}

// Command makes cmd the hidden copy of a command whose name is now another one.
func Command(cmd *cobra.Command, now string) *cobra.Command {
	cmd.Hidden = true
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		warn(cmd, cmd.CommandPath(), now)
	}
	return cmd
}

func warn(cmd *cobra.Command, old, now string) {
	fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s is an old name; use %s\n", cmd.Root().Name(), old, now)
}
