// Package plan is the command that works out how many nodes and pods subnets carry.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/capacity"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// commandFlags are the flags of plan as they are typed.
type commandFlags struct {
	account.SubnetFlags
	exclusive, zones []string
	account.InstanceFlags
	account.ObjectFlags
	objects         account.Objects // of its files
	quota, usedENIs int
	maxPods         []int
	need            capacity.Need
	mix, across     bool
	output, html    string

	karpenter, clusterAutoscaler bool
	operated
}

var formats = []string{"table", "json", "yaml", "csv"}

// Command returns the command plan.
func Command() *cobra.Command {
	f := &commandFlags{}
	cmd := &cobra.Command{
		Use:   "plan --subnet CIDR",
		Short: "Work out how many nodes and pods subnets carry",
		Long: `Work out how many nodes and pods subnets carry, what is wasted, which limit
binds, and what is missing for --nodes or --pods:

  ENIs of a node      = ceil(max-pods / (addresses of an ENI - 1))
  addresses of a node = max-pods + ENIs of a node
  nodes of a subnet   = floor(available / addresses of a node)

A subnet is [ID=]CIDR[@ZONE], or ID[@ZONE] with --available ID=N. Nodes and their
ENIs share a zone. The limit is what must grow for more pods: addresses, eniQuota,
or maxPods if --nodes, and --pods with them, fit.

What a node carries is told by --instance-type, by --cpus and --memory (Baidu's
rules), or by --max-enis and --ips-per-eni, which win over the others and are what a
node may have by pool.maxAllocateENI and pool.maxIPsPerENI. A file for
--limits has the form

  types:
    m5.large: {enis: 3, ipsPerENI: 10}

with the primary ENI among the ENIs and the primary address among the addresses.

With --prefixes a node's pods take whole prefixes of 16 addresses:

  addresses of a node = 16 * ceil(max-pods / 16) + ENIs of a node

With --mix-subnets a node's ENIs may lie in different subnets of its zone: nodes is
then what was found to fit, and nodesAtMost what no way of dealing out can exceed.

--file has Subnets and PodSubnetTopologies: an Exclusive subnet carries no node, and of
a Shared one nodes have what ranges of topologies leave. Addresses that --available tells
of are those of ranges too. Is there an address for each pod of a topology, of which
--topology-pods says how many there are to be? An ENI that carries such pods takes one
more of its subnet; where --nodes says how many nodes there are, each pod may run on a
node of its own. --topology-places are addresses of a node that other pods never take.
Where no ENI carries addresses of another subnet than its own they are whole ENIs:

  ENIs of topologies = ceil(topology-places / (addresses of an ENI - 1))

With --cross-subnet ENIs carry them, as with cloud.crossSubnet of operator.yaml: no ENI
lies in subnets of topologies, and places are on the ENIs that nodes have anyway:

  ENIs of a node = ceil((max-pods + topology-places) / (addresses of an ENI - 1))

With --operator it says how long it takes at least until all pods have addresses when
all of --nodes start at once, max-pods on each or what --pods comes to, with an operator
that takes --share percent of what an account's rates usually are; how many requests
that change something it takes, and which kind of request passes last. Agents are taken
to have their default configuration, and pods of topologies count that --topology-pods
and --topology-places tell of. enipoolctl simulate --operator plays it: these are the
BOUND and PLAN that it prints.

Autoscalers know of addresses only what they are told. --karpenter prints NodeOverlays
by which Karpenter knows how many pods can have one on nodes of a type, and
--cluster-autoscaler the tags by which the Cluster Autoscaler does for a group without
nodes. Both go with conf/kubernetes/scheduling.

The exit code is 1 if --nodes, --pods or pods of topologies do not fit.`,
		Example: `  enipoolctl plan --subnet 10.0.0.0/22 --cpus 16 --memory 128 --max-pods 32 --max-pods 64
  enipoolctl plan --subnet a=10.0.0.0/20@zone-a --available a=1000 --instance-type m5.large -o json
  enipoolctl plan --subnet 10.0.0.0/22 --instance-type m5.large --prefixes --max-pods 110
  enipoolctl plan --karpenter --instance-type m5.large --instance-type m5.xlarge --prefixes
  enipoolctl plan --subnet a=10.0.0.0/20 --subnet db=10.0.16.0/24 --instance-type m5.large -f topologies.yaml --topology-pods databases=30 --topology-places 9 --nodes 50
  kubectl get subnets.enipool.io,podsubnettopologies -o yaml | enipoolctl plan --instance-type m5.large -f - --topology-places 9
  enipoolctl plan --nodes 5000 --pods 150000 --max-pods 30 --max-enis 8 --ips-per-eni 40
  enipoolctl plan --subnet 10.0.0.0/16 --instance-type m5.xlarge --nodes 200 --max-pods 30 --operator`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !slices.Contains(formats, f.output) {
				return fmt.Errorf("--output %s: must be one of %s", f.output, strings.Join(formats, ", "))
			}
			if f.objects, err = f.ReadObjects(cmd.InOrStdin()); err != nil {
				return err
			}
			if err := cmp.Or(f.checkObjects(), f.checkOperator()); err != nil {
				return err
			}
			if f.forAutoscalers() {
				return f.printForAutoscalers(cmd.OutOrStdout())
			}
			plans, err := f.makePlans()
			if err != nil {
				return err
			}
			if err := f.writePage(cmd.ErrOrStderr(), plans); err != nil {
				return err
			}
			if err := printPlans(cmd.OutOrStdout(), f.output, plans); err != nil || !slices.ContainsFunc(plans, planned.isMissed) {
				return err
			}
			return &cli.ExitError{Code: 1}
		},
	}
	f.registerAll(cmd)
	f.completeAll(cmd)
	return cmd
}

func (f *commandFlags) registerAll(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	f.SubnetFlags.Register(cmd, "a subnet, as [ID=]CIDR[@ZONE] or ID[@ZONE]; repeatable")
	flags.StringSliceVar(&f.exclusive, "exclusive", nil, "a subnet that is kept for other pods and carries no node; repeatable")
	flags.StringSliceVar(&f.zones, "zone", nil, "a zone with nodes; repeatable; default: the zones of the subnets")
	flags.StringVar(&f.Cloud, "cloud", "", "aws or baidu; default: aws with an instance type of AWS, baidu with one of Baidu's or --cpus, else neither")
	flags.IntVar(&f.Reserved, "reserved", 0, "addresses of each subnet that the cloud keeps; default: 5 on aws, else 2")
	f.InstanceFlags.Register(cmd, "type of a node, like m5.large or bcc.g5.c16m64; repeatable")
	f.ObjectFlags.Register(cmd)
	flags.IntSliceVar(&f.maxPods, "max-pods", nil, "most pods of a node; repeatable; default: 110, or what a node carries if that is less")
	flags.IntVar(&f.need.Nodes, "nodes", 0, "nodes that the cluster should have at least")
	flags.IntVar(&f.need.Pods, "pods", 0, "pods that the cluster should have at least")
	f.operated.register(cmd)
	flags.BoolVar(&f.mix, "mix-subnets", false, "let the ENIs of a node lie in different subnets of its zone")
	flags.BoolVar(&f.across, "cross-subnet", false, "ENIs carry addresses of topologies' subnets though they lie in others, as with cloud.crossSubnet; not on aws")
	flags.IntVar(&f.quota, "eni-quota", 0, "ENIs that the VPC may have, 0 for any number; default: 5000 on aws, 500 on baidu, else any")
	flags.IntVar(&f.usedENIs, "enis-used", 0, "ENIs of the quota that others use")
	flags.BoolVar(&f.karpenter, "karpenter", false, "print a NodeOverlay for each --instance-type, and its maxPods; no subnet is needed")
	flags.BoolVar(&f.clusterAutoscaler, "cluster-autoscaler", false, "print the tag of an Auto Scaling group for each --instance-type, and its maxPods; no subnet is needed")
	flags.StringVarP(&f.output, "output", "o", "table", "table, json, yaml or csv")
	flags.StringVar(&f.html, "html", "", "write a page with the answer to this file, too")
	_ = cmd.MarkFlagFilename("html", "html")
}

// completeAll makes the shell offer values.
func (f *commandFlags) completeAll(cmd *cobra.Command) {
	f.SubnetFlags.Complete(cmd)
	f.InstanceFlags.Complete(cmd)
	cli.Offer(cmd, "output", formats...)
	cli.Offer(cmd, "max-pods", "32", "64", "110", "128", "256")
	for _, name := range []string{"zone", "reserved", "nodes", "pods", "eni-quota", "enis-used"} {
		cli.Offer(cmd, name)
	}
	_ = cmd.RegisterFlagCompletionFunc("exclusive", f.OfferIDs(""))
}
