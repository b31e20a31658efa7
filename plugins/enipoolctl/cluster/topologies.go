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
	"github.com/enipool/enipool/pkg/operator/classify"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func topologiesCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "wide", "json", "yaml"}}
	cmd := &cobra.Command{
		Use:   "topologies",
		Short: "Show the topologies, the worst first: what pods get of which subnets, and why they wait",
		Long: `Show the PodSubnetTopologies, the worst first: those that can't be served, whose pods
wait, those that the operator has not answered, those without room, then the others in
the order in which they are tried for a pod.

SUBNETS are in order of preference; one with ranges has how many behind it. ROOM is how
many addresses are left for new pods. FOR is since when a topology is READY, or not. A
count that the operator has not told is a dash.`,
		Example: "  enipoolctl cluster topologies\n  enipoolctl cluster topologies -o wide -w",
		Args:    cobra.NoArgs,
		RunE:    shown.run(reach, showTopologies, topologyKind),
	}
	shown.register(cmd, "after each change")
	return cmd
}

// topologyRow is one topology.
type topologyRow struct {
	Topology string       `json:"topology"`
	Strategy string       `json:"strategy"`
	TTL      string       `json:"ttl,omitempty"`
	Priority int          `json:"priority"`
	Subnets  []crd.Source `json:"subnets"`
	Pods     *int32       `json:"pods,omitempty"`
	Claims   *int32       `json:"claims,omitempty"`
	Room     *int32       `json:"room,omitempty"`
	Warm     int          `json:"warm"`
	Zones    []string     `json:"zones,omitempty"`
	Ready    string       `json:"ready"` // True, False or Unknown
	Since    time.Time    `json:"since,omitzero"`
	Reason   string       `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
	Created  time.Time    `json:"created,omitzero"`

	grade int // how bad it is, the least first
}

// The grades of topologies.
const (
	topologyUnready  = iota // its pods wait
	topologyUnjudged        // nobody has looked at it
	topologyFull            // new pods would wait
	topologyWell
)

// topologyRows returns all topologies, the worst first.
func topologyRows(list []crd.PodSubnetTopology) []topologyRow {
	rows := []topologyRow{}
	for i := range list {
		rows = append(rows, topologyRowOf(&list[i]))
	}
	slices.SortFunc(rows, func(a, b topologyRow) int {
		since := 0
		if a.grade == topologyUnready {
			since = older(a.Since, b.Since)
		}
		return cmp.Or(cmp.Compare(a.grade, b.grade), since, cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Topology, b.Topology))
	})
	return rows
}

func topologyRowOf(t *crd.PodSubnetTopology) topologyRow {
	row := topologyRow{Topology: t.Name, Strategy: t.Spec.Strategy.Type, TTL: t.Spec.Strategy.TTL, Priority: int(t.Spec.Priority), Subnets: t.Spec.Subnets,
		Pods: t.Status.Pods, Claims: t.Status.Claims, Room: t.Status.Room, Warm: int(t.Spec.Warm), Zones: t.Status.Zones, Created: t.CreationTimestamp.Time}
	c := meta.FindStatusCondition(t.Status.Conditions, classify.Ready)
	switch {
	case c == nil:
		row.grade, row.Ready, row.Reason = topologyUnjudged, string(metav1.ConditionUnknown), "NotAnswered"
		row.Message = "no operator has looked at it; one does whose operator.yaml has topologies: true"
		return row
	case c.Status != metav1.ConditionTrue:
		row.grade = topologyUnready
	case c.ObservedGeneration < t.Generation:
		row.grade = topologyUnjudged
	case row.Room != nil && *row.Room <= 0:
		row.grade = topologyFull
	default:
		row.grade = topologyWell
	}
	row.Ready, row.Since = string(c.Status), c.LastTransitionTime.Time
	row.Message = c.Message // of one that is ready: which subnets it does without
	if c.Reason != classify.Ready {
		row.Reason = c.Reason
	}
	if c.ObservedGeneration < t.Generation {
		row.Reason, row.Message = "NotAnswered", "the operator has not answered its last change"
		if c.Status != metav1.ConditionTrue {
			row.Message += "; before: " + causeText(c.Reason, c.Message)
		}
	}
	if row.grade == topologyFull {
		row.Reason, row.Message = "NoRoom", withWords("its subnets have no address left for new pods: enipoolctl cluster subnets, and claims --topology "+row.Topology, row.Message)
	}
	return row
}

// whyText says what is the matter with a topology. One that is served may say which subnets it does without.
func whyText(r topologyRow) string {
	if r.Reason == "" {
		return cli.OrDash(r.Message)
	}
	return causeText(r.Reason, r.Message)
}

// withWords joins two messages.
func withWords(first, more string) string {
	if more == "" {
		return first
	}
	return first + "; " + more
}

func showTopologies(ctx context.Context, api *API, p *picture) error {
	list, err := api.ListTopologies(ctx)
	if err != nil {
		return err
	}
	return frame[topologyRow]{"topologies", topologyRows(list), "there are no topologies: all pods get addresses of their node's own subnets", topologyColumns,
		func(r topologyRow) bool { return r.grade == topologyUnready || r.grade == topologyFull }}.showRows(ctx, api, p)
}

func topologyColumns(at moment) []column[topologyRow] {
	return []column[topologyRow]{
		{head: "TOPOLOGY", cell: func(r topologyRow) any { return r.Topology }},
		{head: "STRATEGY", cell: func(r topologyRow) any { return strings.TrimSpace(r.Strategy + " " + r.TTL) }},
		{head: "PRIORITY", cell: func(r topologyRow) any { return r.Priority }},
		{head: "SUBNETS", cell: func(r topologyRow) any { return sourcesText(r.Subnets) }},
		{head: "PODS", cell: func(r topologyRow) any { return count(r.Pods) }},
		{head: "CLAIMS", cell: func(r topologyRow) any { return count(r.Claims) }},
		{head: "ROOM", cell: func(r topologyRow) any { return count(r.Room) }},
		{head: "WARM", cell: func(r topologyRow) any { return r.Warm }, hidden: !at.wide},
		{head: "ZONES", cell: func(r topologyRow) any { return cli.OrDash(strings.Join(r.Zones, ",")) }, hidden: !at.wide},
		{head: "AGE", cell: func(r topologyRow) any { return age(at.now, r.Created) }, hidden: !at.wide},
		{head: "READY", cell: func(r topologyRow) any { return r.Ready }},
		{head: "FOR", cell: func(r topologyRow) any { return age(at.now, r.Since) }},
		{head: "WHY", cell: func(r topologyRow) any { return whyText(r) }},
	}
}

// count is a number of the operator's, a dash if it has told none.
func count(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// sourcesText names subnets, each with how many ranges of it are meant if it is not the whole.
func sourcesText(list []crd.Source) string {
	var names []string
	for _, from := range list {
		switch len(from.Ranges) {
		case 0:
			names = append(names, from.ID)
		case 1:
			names = append(names, from.ID+"(1 range)")
		default:
			names = append(names, fmt.Sprintf("%s(%d ranges)", from.ID, len(from.Ranges)))
		}
	}
	return cli.OrDash(strings.Join(names, ","))
}
