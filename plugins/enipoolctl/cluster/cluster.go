// Package cluster has the commands that show how a cluster's nodes, subnets and budget are where an operator
// calls the cloud, and which nodes call it themselves.
package cluster

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// Flags are how a cluster and its operator are reached, as they are typed.
type Flags struct {
	Kubeconfig, Context string
	Namespace           string
	Operator, Port      string
	Timeout             time.Duration
}

// Register adds the flags to a command and all below it.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "the kubeconfig file; default: those of KUBECONFIG, ~/.kube/config, or the pod's own account")
	flags.StringVar(&f.Context, "context", "", "the context of the kubeconfig; default: the current one")
	flags.StringVar(&f.Namespace, "namespace", "kube-system", "the namespace of operators and agents")
	flags.StringVar(&f.Operator, "operator", "", "the URL of the operator's pages; default: those of its pods, through the API server")
	flags.StringVar(&f.Port, "port", "9810", "the port of its pods' pages")
	flags.DurationVar(&f.Timeout, "timeout", 30*time.Second, "how long a request may take")
	_ = cmd.MarkPersistentFlagFilename("kubeconfig") // the flag exists
	for _, name := range []string{"context", "namespace", "operator", "port"} {
		cli.Offer(cmd, name)
	}
	cli.Offer(cmd, "timeout", "10s", "30s")
}

// Reach returns the API server and who asks the operator. It calls neither.
func (f *Flags) Reach() (Asker, error) {
	api, err := Open(f.Kubeconfig, f.Context, f.Namespace)
	return Asker{API: api, URL: f.Operator, Port: f.Port}, err
}

// Command returns the command cluster.
func Command() *cobra.Command {
	reach := &Flags{}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A cluster with an operator: its nodes, subnets, topologies and budget, and why a node waits",
		Long: `A cluster with an operator: its nodes, subnets, topologies and budget, and why a node
waits.

Nodes, subnets, topologies and claims are read from the API server, budget and places in
the queue from the operator that leads. While nobody leads the others show what was known last, and
how old that is.`,
	}
	reach.Register(cmd)
	return cli.Group(cmd, nodesCommand(reach), subnetsCommand(reach), topologiesCommand(reach), claimsCommand(reach), budgetCommand(reach), whyCommand(reach))
}
