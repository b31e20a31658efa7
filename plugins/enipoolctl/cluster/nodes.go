package cluster

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func nodesCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "wide", "json", "yaml"}}
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show the nodes, the worst first: what they want, have and wait for, and why",
		Long: `Show the nodes, the worst first: those whose pods wait for an address, those
without any address, those with less than they want, then the others.

WANT and HAVE are slots, each room for one pod. In a mixed cluster the nodes whose
agents call the cloud themselves have mode Self, or none if they have never asked an
operator, as nodes of another CNI: what they want and have only they know, and CAUSE
is what their Node shows.`,
		Example: "  enipoolctl cluster nodes\n  enipoolctl cluster nodes -o wide -w",
		Args:    cobra.NoArgs,
		RunE:    shown.run(reach, showNodes, networkKind),
	}
	shown.register(cmd, "after each change")
	return cmd
}

// nodeRow is one node. Want, Have and the like are only known of a node with an operator.
type nodeRow struct {
	Node         string `json:"node"`
	Mode         string `json:"mode,omitempty"` // "" where there is no NodeNetwork
	Want         *int   `json:"want,omitempty"`
	Have         *int   `json:"have,omitempty"`
	Waiting      *int   `json:"waiting,omitempty"`
	ENIs         *int   `json:"enis,omitempty"`
	Capacity     string `json:"podAddresses,omitempty"` // that the Node shows
	Zone         string `json:"zone,omitempty"`
	Instance     string `json:"instance,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Cause        string `json:"cause,omitempty"`
	Message      string `json:"message,omitempty"`

	WaitingSince time.Time `json:"waitingSince,omitzero"`
	Next         time.Time `json:"next,omitzero"` // when it is tried again
	Told         time.Time `json:"told,omitzero"` // when the operator wrote last

	grade int // how bad it is, the least first
}

// The grades of nodes.
const (
	waits    = iota // pods wait for an address
	empty           // no address at all
	short           // less than it wants
	changing        // nobody makes calls for it
	well
)

// conditionKind is what agents show on their Node.
const conditionKind corev1.NodeConditionType = "EnipoolAddressesUnavailable"

// capacityName is the resource that agents publish.
const capacityName corev1.ResourceName = "enipool.io/pod-addresses"

// nodeRows returns all nodes, the worst first.
func nodeRows(nodes []corev1.Node, networks []crd.NodeNetwork) []nodeRow {
	of := map[string]*crd.NodeNetwork{}
	for i := range networks {
		of[networks[i].Name] = &networks[i]
	}
	var rows []nodeRow
	for i := range nodes {
		rows = append(rows, rowOf(&nodes[i], of[nodes[i].Name]))
		delete(of, nodes[i].Name)
	}
	// An object outlives its Node until the operator has ended what is left.
	for name, n := range of {
		r := rowOf(nil, n)
		r.Node, r.Cause, r.Message = name, "NodeGone", "its Node is no more; the operator ends what is left of it"
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b nodeRow) int {
		return cmp.Or(cmp.Compare(a.grade, b.grade), older(a.WaitingSince, b.WaitingSince), cmp.Compare(valueOf(b.Waiting), valueOf(a.Waiting)),
			cmp.Compare(valueOf(b.Want)-valueOf(b.Have), valueOf(a.Want)-valueOf(a.Have)), cmp.Compare(a.Node, b.Node))
	})
	return rows
}

// older orders times, those that are not known last.
func older(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return trueFirst(!a.IsZero(), !b.IsZero())
	}
	return a.Compare(b)
}

func valueOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// rowOf returns what is known of a node, of which the Node or the NodeNetwork may be missing.
func rowOf(node *corev1.Node, network *crd.NodeNetwork) nodeRow {
	row := nodeRow{grade: well}
	if node != nil {
		row.Node, row.Zone, row.InstanceType = node.Name, node.Labels[corev1.LabelTopologyZone], node.Labels[corev1.LabelInstanceTypeStable]
		if amount, is := node.Status.Capacity[capacityName]; is {
			row.Capacity = amount.String()
		}
		for _, c := range node.Status.Conditions {
			if c.Type == conditionKind && c.Status == corev1.ConditionTrue {
				row.Cause, row.Message, row.grade, row.WaitingSince = c.Reason, c.Message, waits, c.LastTransitionTime.Time
			}
		}
	}
	if network == nil {
		return row
	}
	row.Told = toldAt(network)
	row.Zone, row.Instance, row.InstanceType = cmp.Or(network.Status.Zone, row.Zone), network.Status.Instance, cmp.Or(network.Status.InstanceType, row.InstanceType)
	if row.Mode = string(network.Status.Mode); row.Mode == "" {
		row.Mode = string(crd.Self)
		if network.Spec.Mode == crd.Operator {
			row.Mode = "Asked" // no operator has answered yet
		}
	}
	if row.Mode == string(crd.Self) {
		return row // what an operator knew once is old
	}
	row.grade = well
	want, have, pods, enis := int(network.Spec.Slots), int(network.Status.Slots), int(network.Spec.Waiting), int(network.Status.Interfaces)
	row.Want, row.Have, row.Waiting, row.ENIs = &want, &have, &pods, &enis
	row.judge(network)
	return row
}

// judge finds out how bad it is, and why.
func (r *nodeRow) judge(network *crd.NodeNetwork) {
	r.WaitingSince = time.Time{}
	switch {
	case *r.Waiting > 0:
		r.grade = waits
		if network.Spec.WaitingSince != nil {
			r.WaitingSince = network.Spec.WaitingSince.Time
		}
	case *r.Have == 0 && *r.Want > 0:
		r.grade = empty
	case *r.Have < *r.Want:
		r.grade = short
	case r.Mode != string(crd.Operator):
		r.grade = changing
	}
	// A cause of the past may stand there until the next write of a node that lacks nothing.
	switch {
	case len(network.Status.Causes) > 0:
		c := network.Status.Causes[0]
		if r.Cause, r.Message = c.Reason, c.Message; c.Until != nil {
			r.Next = c.Until.Time
		}
	case r.grade == well:
		r.Cause, r.Message = "", ""
	case network.Status.ObservedGeneration < 0:
		r.Cause, r.Message = "NotSaid", "its object was put back from a backup; the node's agent has yet to say what it needs now"
	case network.Status.ObservedGeneration < network.Generation:
		r.Cause, r.Message = "NotAnswered", "the operator has not answered what the node asks for now"
	case r.Mode != string(crd.Operator):
		r.Cause, r.Message = awaited(network)
	case *r.Have >= *r.Want && *r.Waiting > 0:
		r.Cause, r.Message = "Delivered", "it has what it asks for; its agent brings that to the pods, or asks for more"
	case r.grade < changing:
		r.Cause, r.Message = "Growing", "more is on its way"
	}
}

// isBad tells whether people are to look at a node: pods wait there, it has nothing, or it is refused what it lacks. One that has begun to grow is well.
func (r nodeRow) isBad() bool {
	return r.grade <= empty || r.grade == short && !slices.Contains([]string{"Growing", "NotAnswered"}, r.Cause)
}

// awaited returns what a change of who calls the cloud waits for.
func awaited(n *crd.NodeNetwork) (reason, message string) {
	for _, c := range n.Status.Conditions {
		if c.Type == operator.Satisfied {
			return c.Reason, "waits for " + c.Message
		}
	}
	return "", ""
}

// toldAt returns when the operator wrote last, as the API server has noted it.
func toldAt(n *crd.NodeNetwork) (at time.Time) {
	for _, m := range n.ManagedFields {
		if m.Subresource == "status" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	if at.IsZero() && n.Status.DescribedAt != nil {
		at = n.Status.DescribedAt.Time
	}
	return at
}

func showNodes(ctx context.Context, api *API, p *picture) error {
	networks, err := api.ListNetworks(ctx)
	if err != nil {
		return err
	}
	nodes, err := api.ListNodes(ctx)
	if err != nil {
		return err
	}
	return frame[nodeRow]{name: "nodes", rows: nodeRows(nodes, networks), columns: nodeColumns, isBad: nodeRow.isBad}.showRows(ctx, api, p)
}

func nodeColumns(at moment) []column[nodeRow] {
	return []column[nodeRow]{
		{head: "NODE", cell: func(r nodeRow) any { return r.Node }},
		{head: "MODE", cell: func(r nodeRow) any { return cli.OrDash(r.Mode) }},
		{head: "WANT", cell: func(r nodeRow) any { return cell(r.Want) }},
		{head: "HAVE", cell: func(r nodeRow) any { return cell(r.Have) }},
		{head: "WAITING", cell: func(r nodeRow) any { return cell(r.Waiting) }},
		{head: "FOR", cell: func(r nodeRow) any { return age(at.now, r.WaitingSince) }},
		{head: "ENIS", cell: func(r nodeRow) any { return cell(r.ENIs) }},
		{head: "ZONE", cell: func(r nodeRow) any { return cli.OrDash(r.Zone) }},
		{head: "INSTANCE", cell: func(r nodeRow) any { return cli.OrDash(r.Instance) }, hidden: !at.wide},
		{head: "TYPE", cell: func(r nodeRow) any { return cli.OrDash(r.InstanceType) }, hidden: !at.wide},
		{head: "POD-ADDRESSES", cell: func(r nodeRow) any { return cli.OrDash(r.Capacity) }, hidden: !at.wide},
		// Without a leader what stands here is of the past: how old it is people must see.
		{head: "TOLD", cell: func(r nodeRow) any { return age(at.now, r.Told) }, hidden: !at.wide && at.leader.Leads},
		{head: "NEXT", cell: func(r nodeRow) any { return ahead(at.now, r.Next) }},
		{head: "CAUSE", cell: func(r nodeRow) any { return causeText(r.Cause, r.Message) }},
	}
}

func cell(n *int) string {
	if n == nil {
		return "-"
	}
	return strconv.Itoa(*n)
}

// ahead says in how long something is.
func ahead(now, at time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case !at.After(now):
		return "now"
	}
	return "in " + age(at, now)
}

func causeText(cause, message string) string {
	if message == "" {
		return cli.OrDash(cause)
	}
	return cause + ": " + message
}
