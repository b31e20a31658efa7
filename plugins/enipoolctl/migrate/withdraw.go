package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
)

func withdrawCommand(reach *cluster.Flags) *cobra.Command {
	line := withdrawal{}
	cmd := &cobra.Command{
		Use:   "withdraw",
		Short: "Once no operator runs, let all NodeNetworks and AddressClaims be deleted",
		Long: `Once no operator runs and each node's agent calls the cloud itself, take from all
NodeNetworks and AddressClaims what lets them stay until an operator has seen to their
node's ENIs and to their address: the kinds can be deleted then. Without it they would
wait for an operator for ever. No ENI and no address is touched.

  1. Give all nodes' calls back to their agents: enipoolctl migrate node NAME --to self.
  2. kubectl delete -k of what the operator was installed with.
  3. enipoolctl migrate withdraw
  4. kubectl delete -k conf/kubernetes/crds, and before it of conf/kubernetes/topologies
     where that is installed.`,
		Example: "  enipoolctl migrate withdraw --dry-run\n  enipoolctl migrate withdraw --force",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := reach.Reach()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Minute)
			defer cancel()
			line.api, line.out = k.API, cmd.OutOrStdout()
			return line.run(ctx)
		},
	}
	cmd.Flags().BoolVar(&line.force, "force", false, "those too of nodes that an operator called for last: what it had begun, nobody ends")
	cmd.Flags().BoolVar(&line.dryRun, "dry-run", false, "only say what is in the way and what would be done")
	return cmd
}

// withdrawal ends what objects wait for once there is no operator.
type withdrawal struct {
	api           *cluster.API
	out           io.Writer
	force, dryRun bool
}

func (w withdrawal) run(ctx context.Context) error {
	leader := w.api.FindLeader(ctx)
	switch {
	case leader.Unknown != "":
		return errors.New(leader.Line(time.Now()))
	case leader.Leads: // it would see to the objects itself, and one after it would miss what this one had begun
		return fmt.Errorf("%s leads; take the operators off first: kubectl --namespace %s delete deployment enipool-operator", leader.Holder, w.api.Namespace)
	}
	all, err := w.api.ListNetworks(ctx)
	if err != nil {
		return err
	}
	if left := findOperated(all); len(left) > 0 && !w.force {
		return fmt.Errorf("an operator called the cloud last for %s; start it again and give the calls back (`enipoolctl migrate node NAME --to self`), or use --force if these nodes are gone for good", listFew(left))
	}
	told, err := w.withdrawAll(ctx)
	switch {
	case err != nil:
		return err
	case w.dryRun:
		fmt.Fprintf(w.out, "nothing is in the way; %s would no longer wait\n", told)
	default:
		fmt.Fprintf(w.out, "%s wait for no operator any more; the kinds can be deleted: kubectl delete -k conf/kubernetes/crds\n", told)
	}
	return nil
}

// withdrawAll ends what the objects of each kind wait for, and says of how many.
func (w withdrawal) withdrawAll(ctx context.Context) (told string, err error) {
	for _, kind := range []struct{ name, resource, finalizer string }{
		{"NodeNetworks", "nodenetworks", operator.Finalizer}, {"AddressClaims", "addressclaims", claims.Finalizer},
	} {
		names, all, err := w.api.ListFinalized(ctx, kind.resource, kind.finalizer)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if w.dryRun {
				break
			}
			if err := w.api.DropFinalizer(ctx, kind.resource, name, kind.finalizer); err != nil {
				return "", err
			}
		}
		switch {
		case told == "":
			told = fmt.Sprintf("%d of %d %s", len(names), all, kind.name)
		case all > 0: // most clusters have no topologies
			told += fmt.Sprintf(" and %d of %d %s", len(names), all, kind.name)
		}
	}
	return told, nil
}

// listFew names a few of many.
func listFew(names []string) string {
	if len(names) <= 5 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more nodes", strings.Join(names[:5], ", "), len(names)-5)
}

// findOperated returns the nodes for which an operator calls the cloud, or called it last.
func findOperated(all []crd.NodeNetwork) (names []string) {
	for i := range all {
		if m := all[i].Status.Mode; m != "" && m != crd.Self {
			names = append(names, all[i].Name)
		}
	}
	return names
}
