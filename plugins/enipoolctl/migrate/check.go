package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
)

func checkCommand(reach *cluster.Flags) *cobra.Command {
	var output string
	formats := []string{"table", "json", "yaml"}
	cmd := &cobra.Command{
		Use:   "check [NODE...]",
		Short: "Say of each node what it asks for, what the operator knows, what the cloud shows, and what is in the way",
		Long: `Say of each node what its agent asks for, what the operator knows of it, what the cloud
shows and in which subnets new ENIs would lie, and what is in the way of a change; and
what the operator may do in the cloud, as dry runs tell where the cloud has those.

The operator that leads is asked. With observe: true it describes nodes too that have
not asked it yet. The exit code is 1 if something is in the way.`,
		Example: "  enipoolctl migrate check\n  enipoolctl migrate check ip-10-0-0-7.eu-west-3.compute.internal -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(formats, output) {
				return fmt.Errorf("--output %s: must be one of %s", cli.Spelled(output), strings.Join(formats, ", "))
			}
			k, err := reach.Reach()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			r, err := check(ctx, k, args)
			if err != nil {
				return err
			}
			if err := cli.PrintAs(cmd.OutOrStdout(), output, r, func() error { return r.print(cmd.OutOrStdout()) }); err != nil {
				return err
			}
			// Scripts go by the exit code, after people were told.
			if r.isInTheWay() {
				return &cli.ExitError{Code: 1}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", strings.Join(formats, ", "))
	cli.Offer(cmd, "output", formats...)
	return cmd
}

// finding is what the operator says of one thing that it needs in the cloud.
type finding struct {
	What    string `json:"what"`
	Verdict string `json:"verdict"` // works, careful, broken, unknown or unasked
	Detail  string `json:"detail"`
	Fix     string `json:"fix,omitempty"`
}

// checked is one node.
type checked struct {
	Node    string            `json:"node"`
	Mode    string            `json:"mode"`
	Asked   string            `json:"asked,omitempty"` // the mode that its agent asks for
	Pool    *operator.Wanted  `json:"pool,omitempty"`  // as spec and status have it
	Stated  *int              `json:"stated,omitempty"`
	Cloud   *operator.InCloud `json:"cloud,omitempty"`
	InWay   []string          `json:"inTheWay,omitempty"`
	Remarks []string          `json:"remarks,omitempty"`
}

// report is what `migrate check` shows.
type report struct {
	Operator []finding `json:"operator"`
	Nodes    []checked `json:"nodes"`
}

func check(ctx context.Context, k cluster.Asker, only []string) (r report, err error) {
	if err := k.Ask(ctx, "/check", nil, &r.Operator); err != nil {
		return r, err
	}
	var known []operator.Why
	if err := k.Ask(ctx, "/nodes", nil, &known); err != nil {
		return r, err
	}
	nodes, err := k.API.ListNodes(ctx)
	if err != nil {
		return r, err
	}
	networks, err := k.API.ListNetworks(ctx)
	if err != nil {
		return r, err
	}
	// Names that are wrong are told, and not answered with nothing.
	if r.Nodes = judgeAll(nodes, networks, known); len(only) == 0 {
		return r, nil
	}
	for _, name := range only {
		if !slices.ContainsFunc(r.Nodes, func(c checked) bool { return c.Node == name }) {
			return r, fmt.Errorf("the cluster has no node %s; `enipoolctl cluster nodes` lists them", name)
		}
	}
	r.Nodes = slices.DeleteFunc(r.Nodes, func(c checked) bool { return !slices.Contains(only, c.Node) })
	return r, nil
}

// judgeAll says of each node how it is and what is in the way, those with something in the way first.
func judgeAll(nodes []corev1.Node, networks []crd.NodeNetwork, known []operator.Why) (list []checked) {
	of, told := map[string]*crd.NodeNetwork{}, map[string]operator.Why{}
	for i := range networks {
		of[networks[i].Name] = &networks[i]
	}
	for _, w := range known {
		told[w.Node] = w
	}
	for i := range nodes {
		w, is := told[nodes[i].Name]
		list = append(list, judge(&nodes[i], of[nodes[i].Name], w, is))
	}
	slices.SortStableFunc(list, func(a, b checked) int {
		return cmp.Or(cmp.Compare(min(1, len(b.InWay)), min(1, len(a.InWay))), cmp.Compare(a.Node, b.Node))
	})
	return list
}

// judge says how a node is. w is what the operator knows of it, known whether it does.
func judge(node *corev1.Node, n *crd.NodeNetwork, w operator.Why, known bool) checked {
	c := checked{Node: node.Name, Mode: cmp.Or(w.Mode, string(crd.Self)), Cloud: w.Cloud}
	bad := func(format string, args ...any) { c.InWay = append(c.InWay, fmt.Sprintf(format, args...)) }
	remark := func(format string, args ...any) { c.Remarks = append(c.Remarks, fmt.Sprintf(format, args...)) }
	if n != nil {
		c.Asked, c.Pool = string(n.Spec.Mode), &w.Wanted
		stated := 0
		for _, e := range n.Status.ENIs {
			stated += len(e.Addresses)
		}
		c.Stated = &stated
	}
	switch {
	case node.Spec.ProviderID == "":
		bad("the Node has no provider ID, so no instance is known")
	case !known:
		bad("the operator does not know the node; it may have come a moment ago")
	case w.Cloud == nil && c.Asked == string(crd.Operator):
		bad("the operator has not described it yet: `enipoolctl cluster budget` says whether describes fail")
	case w.Cloud == nil:
		bad("the operator has not described it: with observe: true it does, within cloud.describe")
	case w.Cloud.Error != "":
		bad("the cloud: %s", w.Cloud.Error)
	case len(w.Cloud.Subnets) == 0:
		bad("no subnet of zone %s takes a new ENI of it: tag one, or look at `enipoolctl cluster subnets`", cli.OrDash(w.Zone))
	}
	if w.Wrong != "" {
		bad("%s", w.Wrong)
	}
	if zone := node.Labels[corev1.LabelTopologyZone]; zone == "" {
		bad("the Node has no label %s, by which its subnets are found", corev1.LabelTopologyZone)
	}
	if w.Cloud != nil && w.Cloud.Others > 0 {
		remark("%d attached ENIs are not enipool's; they only take room", w.Cloud.Others)
	}
	if w.Cloud != nil && w.Cloud.OtherCluster != "" {
		remark("its ENIs are tagged with cluster %s, which is not cloud.cluster of operator.yaml", w.Cloud.OtherCluster)
	}
	if w.Cloud != nil && w.Cloud.Loose > 0 {
		remark("%d ENIs that were made for it are attached nowhere: its agent makes or deletes them now, or they are leaked", w.Cloud.Loose)
	}
	// While calls are under way both differ for a moment.
	if c.Stated != nil && w.Cloud != nil && c.Mode == string(crd.Operator) && *c.Stated != w.Cloud.Addresses {
		remark("its object has %d addresses, the cloud showed %d", *c.Stated, w.Cloud.Addresses)
	}
	for _, cause := range w.Causes {
		if slices.ContainsFunc(c.InWay, func(said string) bool { return strings.Contains(said, cause.Message) }) {
			continue
		}
		remark("%s: %s", cause.Reason, cause.Message)
	}
	return c
}

func (r report) isInTheWay() bool {
	return slices.ContainsFunc(r.Operator, func(f finding) bool { return f.Verdict == "broken" }) ||
		slices.ContainsFunc(r.Nodes, func(c checked) bool { return len(c.InWay) > 0 })
}

func (r report) print(out io.Writer) error {
	fmt.Fprintln(out, "the operator in the cloud:")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range r.Operator {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", f.What, f.Verdict, f.Detail)
		if f.Fix != "" && f.Verdict != "works" {
			fmt.Fprintf(table, "  \t\t-> %s\n", f.Fix)
		}
	}
	if len(r.Operator) == 0 {
		fmt.Fprintln(table, "  nothing to check")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tMODE\tASKED\tWANT\tHAVE\tSTATED\tENIS\tIN-CLOUD\tOF\tSUBNETS\tRESULT")
	for _, c := range r.Nodes {
		want, have, stated, enis, there, limits, subnets := "-", "-", "-", "-", "-", "-", "-"
		if c.Pool != nil {
			want, have, stated = strconv.Itoa(c.Pool.Want), strconv.Itoa(c.Pool.Have), strconv.Itoa(*c.Stated)
		}
		if c.Cloud != nil {
			enis, there, limits, subnets = strconv.Itoa(c.Cloud.ENIs), strconv.Itoa(c.Cloud.Addresses), cli.OrDash(c.Cloud.Limits), cli.OrDash(strings.Join(c.Cloud.Subnets, ","))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Node, c.Mode, cli.OrDash(c.Asked), want, have, stated, enis, there, limits, subnets, c.result())
	}
	return table.Flush()
}

// result says in a cell whether something is in the way.
func (c checked) result() string {
	text := "ready"
	if len(c.InWay) > 0 {
		text = strings.Join(c.InWay, "; ")
	} else if c.Mode == string(crd.Operator) {
		text = "has an operator"
	}
	if len(c.Remarks) > 0 {
		text += " (" + strings.Join(c.Remarks, "; ") + ")"
	}
	return text
}
