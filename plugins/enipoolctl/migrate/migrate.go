// Package migrate has the commands that bring nodes from agents that call the cloud themselves to an operator, and back.
package migrate

import (
	"github.com/spf13/cobra"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
)

// Command returns the command migrate.
func Command() *cobra.Command {
	f := &cluster.Flags{}
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Give a node's calls to the cloud to the operator, or give them to its agent again",
		Long: `Give a node's calls to the cloud to the operator, or give them to its agent again. No
pod and no address is touched. Nodes of both kinds may stay side by side for ever.

  1. Install conf/kubernetes/crds, then a copy of conf/kubernetes/operator with
     observe: true in its operator.yaml.
  2. enipoolctl migrate check: what the operator sees, may do, and would choose.
  3. Remove observe and apply that again; then set cloud.provider: operator in
     agent.yaml. Agents that run go on as they are until they are started again.
  4. enipoolctl migrate node NAME for the first nodes; then for all others
     kubectl --namespace kube-system rollout restart daemonset/enipool-agent.`,
	}
	f.Register(cmd)
	return cli.Group(cmd, checkCommand(f), nodeCommand(f), withdrawCommand(f))
}
