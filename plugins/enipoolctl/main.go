// Command enipoolctl is for people: it loads, shows and checks a node's pool of
// addresses, checks what a cloud allows, shows a cluster with an operator and brings
// nodes to one, makes topologies of another system's objects, plans subnets, simulates
// pools, and demonstrates the plugin on a simulated VPC.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/enipool/enipool/plugins/enipoolctl/bundle"
	"github.com/enipool/enipool/plugins/enipoolctl/cce"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cloud"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
	"github.com/enipool/enipool/plugins/enipoolctl/demo"
	"github.com/enipool/enipool/plugins/enipoolctl/migrate"
	"github.com/enipool/enipool/plugins/enipoolctl/nodecheck"
	"github.com/enipool/enipool/plugins/enipoolctl/plan"
	"github.com/enipool/enipool/plugins/enipoolctl/pool"
	"github.com/enipool/enipool/plugins/enipoolctl/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/vpc"
	"github.com/spf13/cobra"
)

// release is set by the linker.
var release = "unreleased"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, rootCommand(), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:     "enipoolctl",
		Short:   "Show and check a node's pool of ENI addresses, its cloud and its cluster, plan subnets, simulate pools",
		Long:    "Show and check a node's pool of ENI addresses, its cloud and its cluster, plan subnets,\nsimulate pools.\n\n" + cli.ExitCodes + "\n\n" + cli.Programs,
		Version: release,
	}
	return cli.Group(root, versionCommand(), manCommand(), pool.Command(), pool.ScaleCommand(), plan.Command(), simulate.Command(release), simulate.TuneCommand(release),
		cloud.Command(), cluster.Command(), migrate.Command(), cce.Command(), demo.Command(), vpc.Command(), bundle.Command(release), nodecheck.Command())
}
