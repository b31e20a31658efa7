package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func subnetsCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "json", "yaml"}}
	cmd := &cobra.Command{
		Use:   "subnets",
		Short: "Show the subnets, the fullest first: what they have left, and for whom",
		Long: `Show the subnets, the fullest first. FREE is what the cloud says, OWED is what the
ENIs that lie there are still to get, ROOM is what is left for new ones. A subnet that
is Full is tried again at NEXT; one that is Low, by isolateBelow of its Subnet, gets no
new ENIs. RESERVED is how many of the ranges that its Subnet names in reserve are
reserved in the cloud, and how many more are: those of topologies; -o yaml names them.`,
		Example: "  enipoolctl cluster subnets\n  enipoolctl cluster subnets -w",
		Args:    cobra.NoArgs,
		RunE:    shown.run(reach, showSubnets, subnetKind),
	}
	shown.register(cmd, "after each change")
	return cmd
}

// subnetRow is one subnet.
type subnetRow struct {
	Subnet    string    `json:"subnet"`
	Use       string    `json:"use"`
	State     string    `json:"state,omitempty"`
	Zone      string    `json:"zone,omitempty"`
	CIDR      string    `json:"cidr,omitempty"`
	CIDR6     string    `json:"cidr6,omitempty"`
	Free      int       `json:"free"`
	Room      int       `json:"room"`
	Owed      int       `json:"owed"`
	ENIs      int       `json:"enis"`
	Addresses int       `json:"addresses"`
	FullSince time.Time `json:"fullSince,omitzero"`
	Next      time.Time `json:"next,omitzero"`
	Described time.Time `json:"described,omitzero"`
	Ranges    *ranges   `json:"ranges,omitempty"`
}

// ranges are those that people want reserved in the cloud, and those that are.
type ranges struct {
	Reserve  []string `json:"reserve"`
	Reserved []string `json:"reserved"`
	Reason   string   `json:"reason,omitempty"` // why not all are
	Message  string   `json:"message,omitempty"`

	restAre string // what those are that the Subnet does not name: of topologies, once the operator has compared all; before, some may be about to end
}

// rangesOf returns them, nil where there are none.
func rangesOf(s *crd.Subnet) *ranges {
	if len(s.Spec.Reserve)+len(s.Status.Reserved) == 0 {
		return nil
	}
	r := &ranges{Reserve: append([]string{}, s.Spec.Reserve...), Reserved: []string{}, restAre: "more"}
	for _, held := range s.Status.Reserved {
		r.Reserved = append(r.Reserved, held.CIDR)
	}
	switch c := meta.FindStatusCondition(s.Status.Conditions, operator.Reserved); {
	case c == nil:
	case c.Status != metav1.ConditionTrue:
		r.Reason, r.Message = c.Reason, c.Message
	case c.ObservedGeneration == s.Generation:
		r.restAre = "for topologies"
	}
	return r
}

// countReserved says how many of the ranges are reserved, and what keeps the others from it.
func countReserved(s subnetRow) string {
	if s.Ranges == nil {
		return "-"
	}
	named, words := 0, []string(nil)
	for _, cidr := range s.Ranges.Reserved {
		if slices.Contains(s.Ranges.Reserve, cidr) {
			named++
		}
	}
	if all := len(s.Ranges.Reserve); all > 0 {
		words = append(words, fmt.Sprintf("%d of %d", named, all))
	}
	if s.Ranges.Reason != "" {
		words = append(words, s.Ranges.Reason)
	}
	if rest := len(s.Ranges.Reserved) - named; rest > 0 {
		words = append(words, fmt.Sprintf("%d %s", rest, s.Ranges.restAre))
	}
	return strings.Join(words, ", ")
}

// graveness orders the states.
var graveness = []string{"Full", "Missing", "Low", "Unmanaged", "", "Ready", "Disabled"}

// subnetRows returns all subnets, the fullest first.
func subnetRows(list []crd.Subnet) (rows []subnetRow) {
	for _, s := range list {
		row := subnetRow{Subnet: s.Name, Use: s.Spec.Use, State: s.Status.State, Zone: s.Status.Zone, CIDR: s.Status.V4, CIDR6: s.Status.V6,
			Free: int(s.Status.Free), Room: int(s.Status.Room), Owed: int(s.Status.Owed), ENIs: int(s.Status.Interfaces), Addresses: int(s.Status.Addresses), Ranges: rangesOf(&s)}
		if s.Status.FullSince != nil {
			row.FullSince = s.Status.FullSince.Time
		}
		if s.Status.RetryAt != nil {
			row.Next = s.Status.RetryAt.Time
		}
		if s.Status.DescribedAt != nil {
			row.Described = s.Status.DescribedAt.Time
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b subnetRow) int {
		return cmp.Or(cmp.Compare(slices.Index(graveness, a.State), slices.Index(graveness, b.State)), cmp.Compare(a.Room, b.Room), cmp.Compare(a.Subnet, b.Subnet))
	})
	return rows
}

// isBad tells whether people are to look at a subnet: it has nothing left, is not there, or a range of it can't be reserved.
func (r subnetRow) isBad() bool {
	return r.State == "Full" || r.State == "Missing" || r.Ranges != nil && r.Ranges.Reason != ""
}

func showSubnets(ctx context.Context, api *API, p *picture) error {
	list, err := api.ListSubnets(ctx)
	if err != nil {
		return err
	}
	return frame[subnetRow]{name: "subnets", rows: subnetRows(list), columns: subnetColumns, isBad: subnetRow.isBad}.showRows(ctx, api, p)
}

func subnetColumns(at moment) []column[subnetRow] {
	return []column[subnetRow]{
		{head: "SUBNET", cell: func(r subnetRow) any { return r.Subnet }},
		{head: "USE", cell: func(r subnetRow) any { return r.Use }},
		{head: "STATE", cell: func(r subnetRow) any { return cli.OrDash(r.State) }},
		{head: "FOR", cell: func(r subnetRow) any { return age(at.now, r.FullSince) }},
		{head: "NEXT", cell: func(r subnetRow) any { return ahead(at.now, r.Next) }},
		{head: "ZONE", cell: func(r subnetRow) any { return cli.OrDash(r.Zone) }},
		{head: "CIDR", cell: func(r subnetRow) any { return cli.OrDash(cmp.Or(r.CIDR, r.CIDR6)) }},
		{head: "FREE", cell: func(r subnetRow) any { return r.Free }},
		{head: "ROOM", cell: func(r subnetRow) any { return r.Room }},
		{head: "OWED", cell: func(r subnetRow) any { return r.Owed }},
		{head: "ENIS", cell: func(r subnetRow) any { return r.ENIs }},
		{head: "ADDRESSES", cell: func(r subnetRow) any { return r.Addresses }},
		{head: "RESERVED", cell: func(r subnetRow) any { return countReserved(r) }},
		{head: "DESCRIBED", cell: func(r subnetRow) any { return age(at.now, r.Described) }},
	}
}
