package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/topology"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func claimsCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "wide", "json", "yaml"}}
	var only claimFilter
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "Show the addresses that are kept for pods, the worst first: where each is, and until when",
		Long: `Show the AddressClaims, the worst first: those that can't be read, those whose address
another ENI has, those on their way to a node, those that end, then those that are free,
the next to end first, then those that pods have.

FREE is since when no pod has had it, ENDS is when it goes back if none comes: after the
ttl, or with the StatefulSet that KEPT BY names. MOVES is how often it has gone from node
to node. Who deletes a claim releases its address: kubectl delete addressclaim NAME, which
is the address, of IPv6 its 32 digits.`,
		Example: "  enipoolctl cluster claims\n  enipoolctl cluster claims --topology databases -o wide",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			show := func(ctx context.Context, api *API, p *picture) error { return showClaims(ctx, api, only, p) }
			return shown.run(reach, show, claimKind)(cmd, args)
		},
	}
	shown.register(cmd, "after each change")
	cmd.Flags().StringVar(&only.topology, "topology", "", "only those of this topology")
	cmd.Flags().StringVar(&only.node, "node", "", "only those on this node, or on their way to it")
	reach.offer(cmd, "topology", topologyNames)
	reach.offer(cmd, "node", nodeNames)
	return cmd
}

// claimFilter selects claims; an empty field selects all.
type claimFilter struct{ topology, node string }

func (f claimFilter) takesRow(r claimRow) bool {
	return (f.topology == "" || f.topology == r.Topology) && (f.node == "" || f.node == r.Node || f.node == r.To)
}

// claimRow is one claim.
type claimRow struct {
	Name        string    `json:"name"`
	Address     string    `json:"address"`
	Topology    string    `json:"topology"`
	Namespace   string    `json:"namespace"`
	Pod         string    `json:"pod"`
	PodUID      string    `json:"podUID,omitempty"`
	Phase       string    `json:"phase,omitempty"`
	Node        string    `json:"node,omitempty"`
	To          string    `json:"to,omitempty"` // the node that it moves to
	Subnet      string    `json:"subnet"`
	ENI         string    `json:"eni,omitempty"`
	TTL         string    `json:"ttl,omitempty"`
	StatefulSet string    `json:"statefulSet,omitempty"` // that it is kept for, where it has no ttl
	FreeSince   time.Time `json:"freeSince,omitzero"`
	Ends        time.Time `json:"ends,omitzero"` // if no pod comes
	Moves       int       `json:"moves"`
	Message     string    `json:"message,omitempty"`
	Created     time.Time `json:"created,omitzero"`
	Deleted     time.Time `json:"deleted,omitzero"` // when people or the operator have asked for its end

	grade int // how bad it is, the least first
}

// The grades of claims.
const (
	claimUnreadable = iota // the operator leaves it alone
	claimContested         // its pod waits until others end with the address
	claimMoving            // its pod waits
	claimEnding
	claimFree
	claimWell
)

// claimRows returns the claims of a filter, the worst first.
func claimRows(list []crd.AddressClaim, only claimFilter) []claimRow {
	rows := []claimRow{}
	for i := range list {
		if row := claimRowOf(&list[i]); only.takesRow(row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b claimRow) int {
		return cmp.Or(cmp.Compare(a.grade, b.grade), older(a.Ends, b.Ends), cmp.Compare(b.Moves, a.Moves), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Address, b.Address))
	})
	return rows
}

func claimRowOf(c *crd.AddressClaim) claimRow {
	row := claimRow{Name: c.Name, Address: c.Spec.Address, Topology: c.Spec.Topology, Namespace: c.Spec.Namespace, Pod: c.Spec.Pod, PodUID: c.Status.PodUID, Phase: c.Status.Phase,
		Node: c.Status.Node, To: c.Status.To, Subnet: c.Spec.Subnet, ENI: c.Status.Interface, TTL: c.Spec.TTL, Moves: int(c.Status.Moves), Message: c.Status.Message,
		Created: c.CreationTimestamp.Time}
	if c.Spec.Workload != nil {
		row.StatefulSet = c.Spec.Workload.Name
	}
	if c.DeletionTimestamp != nil {
		row.Deleted = c.DeletionTimestamp.Time
	}
	is, err := c.Read()
	if err != nil {
		row.grade, row.Message = claimUnreadable, err.Error()
		return row
	}
	row.FreeSince = is.FreeSince
	if is.Keep == topology.Sticky && !is.FreeSince.IsZero() {
		row.Ends = is.FreeSince.Add(is.TTL)
	}
	row.grade = gradeClaim(is.Phase, !row.Deleted.IsZero())
	return row
}

func gradeClaim(phase topology.Phase, deleted bool) int {
	switch {
	case phase == topology.Contested:
		return claimContested
	case phase == topology.Releasing, deleted:
		return claimEnding
	case phase == topology.Free:
		return claimFree
	case phase == topology.Bound:
		return claimWell
	}
	return claimMoving // so is one that nobody has begun with
}

func showClaims(ctx context.Context, api *API, only claimFilter, p *picture) error {
	list, err := api.ListClaims(ctx)
	if err != nil {
		return err
	}
	return frame[claimRow]{"claims", claimRows(list, only), "no address is kept for a pod here", claimColumns,
		func(r claimRow) bool { return r.grade <= claimContested }}.showRows(ctx, api, p)
}

func claimColumns(at moment) []column[claimRow] {
	return []column[claimRow]{
		{head: "ADDRESS", cell: func(r claimRow) any { return r.Address }},
		{head: "TOPOLOGY", cell: func(r claimRow) any { return r.Topology }},
		{head: "POD", cell: func(r claimRow) any { return r.Namespace + "/" + r.Pod }},
		{head: "PHASE", cell: func(r claimRow) any { return r.phaseText() }},
		{head: "NODE", cell: func(r claimRow) any { return r.nodeText() }},
		{head: "SUBNET", cell: func(r claimRow) any { return r.Subnet }, hidden: !at.wide},
		{head: "ENI", cell: func(r claimRow) any { return cli.OrDash(r.ENI) }, hidden: !at.wide},
		{head: "AGE", cell: func(r claimRow) any { return age(at.now, r.Created) }, hidden: !at.wide},
		{head: "KEPT BY", cell: func(r claimRow) any { return r.keptBy() }},
		{head: "FREE", cell: func(r claimRow) any { return age(at.now, r.FreeSince) }},
		{head: "ENDS", cell: func(r claimRow) any { return r.endText(at.now) }},
		{head: "MOVES", cell: func(r claimRow) any { return r.Moves }},
		{head: "MESSAGE", cell: func(r claimRow) any { return cli.OrDash(r.Message) }},
	}
}

func (r claimRow) phaseText() string {
	switch {
	case r.Deleted.IsZero():
		return cli.OrDash(r.Phase)
	case r.Phase == "":
		return "deleted"
	}
	return r.Phase + ", deleted"
}

func (r claimRow) nodeText() string {
	if r.To != "" && r.To != r.Node {
		return cli.OrDash(r.Node) + " to " + r.To
	}
	return cli.OrDash(r.Node)
}

func (r claimRow) keptBy() string {
	if r.StatefulSet != "" {
		return "StatefulSet " + r.StatefulSet
	}
	return cli.OrDash(r.TTL)
}

func (r claimRow) endText(now time.Time) string {
	if r.FreeSince.IsZero() {
		return "-" // a pod has it
	}
	if r.StatefulSet != "" {
		return "with it"
	}
	return ahead(now, r.Ends)
}
