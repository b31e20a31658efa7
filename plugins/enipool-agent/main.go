// Command enipool-agent is the companion sync loop of one node: it keeps the pool
// of addresses, from which the plugin takes, as large as the node's pods need.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
	"github.com/enipool/enipool/plugins/enipool-agent/configfile"
	"github.com/enipool/enipool/plugins/enipool-agent/setup"
	"github.com/spf13/cobra"
)

// release is set by the linker.
var release = "unreleased"

// garbage is how much of it, in percent of what is in use, may lie about before it is
// collected, unless GOGC says it: every node pays for the agent's memory, and the
// agent rests nearly all the time.
const garbage = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := runCommand(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runCommand is the program: 0 is success, 1 a node that could not be made right, 2 a
// wrong call or configuration.
func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var line configfile.Flags
	root := &cobra.Command{
		Use:   "enipool-agent",
		Short: "Keep a node's pool of ENI addresses as large as its pods need",
		Long: `Keep a node's pool of ENI addresses as large as its pods need.

It works on the node whose network namespace it runs in, and needs root there.
SIGHUP or a change of the file reloads the configuration; SIGTERM ends it and
leaves everything to the pods as it is. When the file is wrong at a start the agent
goes on with the configuration that was in force last, and says so.`,
		Example: `  enipool-agent --config /etc/enipool/agent.yaml
  enipool-agent --config agent.yaml --dry-run    # what it would do, and why`,
		Version:       release,
		Args:          refuseArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := runAgent(cmd.Context(), line, stdout, stderr)
			return cli.NeedsRoot(os.Geteuid(), err, err)
		},
	}
	root.Flags().StringVar(&line.Config, "config", "/etc/enipool/agent.yaml", "the configuration file")
	root.Flags().BoolVar(&line.Once, "once", false, "make the node right once, then end")
	root.Flags().BoolVar(&line.DryRun, "dry-run", false, "print what would be done and why; change nothing")
	root.AddCommand(setup.Commands(release, stdout)...)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if ran != root && strings.HasPrefix(err.Error(), "unknown command") { // the library has no type for it
		err = config.StrayArgument(ran.CommandPath(), ran.Flags().Arg(0))
	}
	fmt.Fprintf(stderr, "enipool-agent: %v\n", err)
	var unfit *cli.NodeError
	if errors.As(err, &unfit) {
		return 1
	}
	return 2
}

// refuseArguments refuses words that are no command.
func refuseArguments(root *cobra.Command, args []string) error {
	var commands []string
	for _, c := range root.Commands() {
		commands = append(commands, c.Name())
	}
	return config.UnknownArgument(root.Name(), commands, args)
}
