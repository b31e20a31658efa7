package cluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeWithin is how long people wait for what the shell offers them.
const completeWithin = 3 * time.Second

// names returns the names that a shell offers, none where the cluster can't be asked.
func (f *Flags) names(cmd *cobra.Command, list func(context.Context, *API) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	var names []string
	if api, err := Open(f.Kubeconfig, f.Context, f.Namespace); err == nil {
		names, _ = list(ctx, api) // without an answer there is nothing to offer
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// offer makes the shell offer names of the cluster for a flag.
func (f *Flags) offer(cmd *cobra.Command, flag string, list func(context.Context, *API) ([]string, error)) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) { // the flag exists
		return f.names(cmd, list)
	})
}

// CompleteNode makes the shell offer the cluster's nodes for the one argument of a command.
func (f *Flags) CompleteNode(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.names(cmd, nodeNames)
}

func nodeNames(ctx context.Context, api *API) ([]string, error) {
	list, err := api.ListNodes(ctx)
	return namesOf(list, func(i int) metav1.Object { return &list[i] }), err
}

func topologyNames(ctx context.Context, api *API) ([]string, error) {
	list, err := api.ListTopologies(ctx)
	return namesOf(list, func(i int) metav1.Object { return &list[i] }), err
}

func namesOf[T any](list []T, at func(i int) metav1.Object) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = at(i).GetName()
	}
	return names
}
