// Package vpc are the commands that keep a simulated VPC up on this machine: nodes to try agents and the plugin on, without a cloud.
package vpc

import (
	"fmt"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// Command returns the command vpc.
func Command() *cobra.Command {
	at := &place{}
	cmd := cli.Group(&cobra.Command{
		Use:   "vpc SUBCOMMAND",
		Short: "Keep a simulated VPC with nodes up on this machine, to try enipool on",
	}, serveCommand(at), execCommand(at), stopCommand(at))
	cmd.PersistentFlags().StringVar(&at.folder, "folder", defaultFolder(), "where the VPC's socket and its nodes' files are")
	_ = cmd.MarkPersistentFlagDirname("folder") // the flag exists
	return cmd
}

func serveCommand(at *place) *cobra.Command {
	o := options{nodes: []string{"node-1"}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Make the VPC and serve its account until interrupted",
		Long: `Make a VPC 10.0.0.0/16 of network namespaces of this machine, with a router, an
internet and nodes, each with its primary ENI, and serve its account on a socket to
agents with "provider: sim". An agent.yaml is there for each node. What is done to the
VPC ends with it: an interrupt, or "vpc stop", removes all of it.

It needs root, or a kernel that lets everybody have user namespaces.`,
		Example: `  enipoolctl vpc serve --detach --agent .build/enipool-agent
  enipoolctl vpc exec node-1 -- enipoolctl pool show`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), at, o) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.nodes, "node", o.nodes, "name of a node; may be repeated")
	f.IntVar(&o.enis, "enis", 4, "ENIs that a node can have")
	f.IntVar(&o.addresses, "addresses", 16, "addresses for pods that an ENI can have")
	f.StringVar(&o.agent, "agent", "", "the program enipool-agent: started on each node, and again when it ends")
	f.BoolVar(&o.detach, "detach", false, "go on in the background; its output is in the file serve.log of the folder")
	_ = cmd.MarkFlagFilename("agent") // the flag exists
	for _, name := range []string{"node", "enis", "addresses"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

func execCommand(at *place) *cobra.Command {
	return &cobra.Command{
		Use:   "exec NODE -- PROGRAM [ARGUMENTS]",
		Short: "Run a program on a node",
		Long: `Run a program in the network of one of the VPC's nodes. In its environment ENIPOOL_CACHE
is the path of that node's cache: "enipoolctl pool" and scripts/cnitool.sh take it from
there.`,
		Example: "  enipoolctl vpc exec node-1 -- ip rule",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("name a node and a program to run there: %s NODE -- PROGRAM", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return execOn(at, args[0], args[1:]) },
	}
}

func stopCommand(at *place) *cobra.Command {
	return &cobra.Command{
		Use:     "stop",
		Short:   "End the VPC and remove it, what a killed one has left too",
		Example: "  enipoolctl vpc stop",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return stop(cmd.Context(), at, cmd.OutOrStdout()) },
	}
}
