// Package cluster has the commands that show how a cluster's nodes, subnets and budget are where an operator
// calls the cloud, and which nodes call it themselves.
package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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

// view is a command that shows something once or, with -w, again after each change.
type view struct {
	output  string
	formats []string
	watch   bool
}

// register adds the flags of a view.
func (v *view) register(cmd *cobra.Command, watch bool) {
	cmd.Flags().StringVarP(&v.output, "output", "o", "table", strings.Join(v.formats, ", "))
	cli.Offer(cmd, "output", v.formats...)
	if watch {
		cmd.Flags().BoolVarP(&v.watch, "watch", "w", false, "show again after each change, until interrupted")
	}
}

func (v *view) check() error {
	if !slices.Contains(v.formats, v.output) {
		return fmt.Errorf("--output %s: must be one of %s", cli.Spelled(v.output), strings.Join(v.formats, ", "))
	}
	return nil
}

// run returns what a command does that shows one kind of object.
func (v *view) run(reach *Flags, show func(ctx context.Context, api *API, output string, out io.Writer) error, kind string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := v.check(); err != nil {
			return err
		}
		k, err := reach.Reach()
		if err != nil {
			return err
		}
		once := func(ctx context.Context) error { return show(ctx, k.API, v.output, cmd.OutOrStdout()) }
		return v.showAll(cmd.Context(), reach, cmd.OutOrStdout(), k.API, once, kind)
	}
}

// pause is how long after a picture the next one comes: lists of thousands of nodes are megabytes.
const pause = 2 * time.Second

// showAll shows once, or after each change of what resources name. On a terminal each picture replaces the one before.
func (v *view) showAll(ctx context.Context, reach *Flags, out io.Writer, api *API, show func(context.Context) error, resources ...string) error {
	once := func() error {
		within, cancel := context.WithTimeout(ctx, reach.Timeout)
		defer cancel()
		return show(within)
	}
	if !v.watch {
		return once()
	}
	changed := make(chan struct{}, 1)
	for _, resource := range resources {
		go api.watchNetworks(ctx, resource, changed)
	}
	file, _ := out.(*os.File)
	screen := file != nil && term.IsTerminal(int(file.Fd()))
	// What changes meanwhile is shown by the next picture: there is one of them in two seconds at most.
	for {
		if screen {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if err := once(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
