package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
ENIs and addresses: the kinds can be deleted then. Without it they would wait for an
operator for ever. No ENI and no address is touched.

  1. Give all nodes' calls back to their agents: enipoolctl migrate node NAME --to self.
  2. kubectl delete -k of what the operator was installed with.
  3. enipoolctl migrate withdraw
  4. kubectl delete -k conf/kubernetes/topologies, and of conf/kubernetes/crds`,
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
	done := 0
	for i := range all {
		if !slices.Contains(all[i].Finalizers, operator.Finalizer) {
			continue
		}
		if done++; w.dryRun {
			continue
		}
		if err := w.api.DropFinalizer(ctx, all[i].Name, operator.Finalizer); err != nil {
			return err
		}
	}
	claimed, err := w.withdrawClaims(ctx)
	if err != nil {
		return err
	}
	if w.dryRun {
		fmt.Fprintf(w.out, "nothing is in the way; %d of %d NodeNetworks%s would no longer wait\n", done, len(all), claimed)
		return nil
	}
	fmt.Fprintf(w.out, "%d of %d NodeNetworks%s wait for no operator any more; the kinds can be deleted: kubectl delete -k conf/kubernetes/crds\n", done, len(all), claimed)
	return nil
}

// withdrawClaims does the same for AddressClaims, and says of how many. Addresses stay on their ENIs, and no pod that runs loses one.
func (w withdrawal) withdrawClaims(ctx context.Context) (text string, err error) {
	all, err := w.api.ListClaimsIfAny(ctx)
	if err != nil || len(all) == 0 {
		return "", err
	}
	done := 0
	for i := range all {
		if !slices.Contains(all[i].Finalizers, claims.Finalizer) {
			continue
		}
		if done++; w.dryRun {
			continue
		}
		if err := w.api.DropClaimFinalizer(ctx, all[i].Name, claims.Finalizer); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(" and %d of %d AddressClaims", done, len(all)), nil
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
