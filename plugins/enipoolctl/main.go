// Command enipoolctl is for people: it loads, shows and checks a node's pool of
// addresses, plans and simulates pools, and demonstrates the plugin on a simulated
// VPC.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/plan"
	"github.com/spf13/cobra"
)

// release is set by the linker.
var release = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the program: 0 is success, 1 what a command found wrong, 2 a failure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var exit *cli.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintf(stderr, "enipoolctl: %v\n", err)
	return 2
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "enipoolctl",
		Short:         "Show and check a node's pool of ENI addresses, plan pools, simulate them",
		Version:       release,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(poolCommand(), scaleCommand(), plan.Command(), simulateCommand(), tuneCommand(), cloudCommand(), demoCommand())
	return root
}

func poolCommand() *cobra.Command {
	pool := &cobra.Command{
		Use:   "pool",
		Short: "The node's pool: load, show, check, reclaim",
		Long: `The node's pool: load, show, check, reclaim.

All of them work on the node whose network namespace they run in and on the node
cache that the plugin reads. They need root.`,
	}
	cache := &nodecache.Cache{}
	pool.PersistentFlags().StringVar(&cache.Path, "cache", nodecache.DefaultPath, "the node cache")
	return cli.Group(pool, loadCommand(cache), showCommand(cache), checkCommand(cache), reclaimCommand(cache))
}
