package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func budgetCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "json", "yaml"}}
	cmd := &cobra.Command{
		Use:   "budget",
		Short: "Show what the operator may ask of the cloud, and what waits for it",
		Long: `Show what the operator that leads may ask of the cloud, and what waits for it.

TOKENS are requests of an action that may be sent at once, RATE is how many more per
second: less than USUAL for a while after the cloud has throttled. OTHERS is how many
nodes send that call the cloud themselves, as describes let expect: USUAL is that much
less than the operator's share. CLOSED is how long nothing is sent.`,
		Example: "  enipoolctl cluster budget\n  enipoolctl cluster budget --operator http://127.0.0.1:9810 -o json\n  enipoolctl cluster budget -w",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := shown.check(); err != nil {
				return err
			}
			k, err := reach.Reach()
			if err != nil && reach.Operator == "" { // its own URL needs no API server
				return err
			}
			return shown.showAll(cmd, reach, nil, func(ctx context.Context, p *picture) error { return showBudget(ctx, k, p) })
		},
	}
	shown.register(cmd, "every 2 seconds")
	return cmd
}

func showBudget(ctx context.Context, k Asker, p *picture) error {
	var r operator.Report
	if err := k.Ask(ctx, "/budget", nil, &r); err != nil {
		return err
	}
	return cli.PrintAs(p, p.output, r, func() error { return printBudget(p, r, time.Now()) })
}

func printBudget(p *picture, known operator.Report, now time.Time) error {
	p.say(known.Waiting > 0, fmt.Sprintf("epoch %d, %d nodes with an operator, %d of them have what they want; %d slots short, %d pods wait, %d calls under way",
		known.Epoch, known.Nodes["Operator"], known.Satisfied, known.Short, known.Waiting, known.UnderWay))
	described := "nothing was described in this term yet"
	if known.DescribedAt != nil {
		described = "everything was described " + age(now, *known.DescribedAt) + " ago"
	}
	// Who reads this wants to know first whether what stands below is of now.
	if known.Failing != "" {
		described += "; " + known.Failing
	}
	if known.Observe {
		described += "; it observes, and calls nothing that changes"
	}
	p.say(known.Failing != "", described)
	if known.OtherCluster != "" {
		p.say(true, fmt.Sprintf("most of the nodes' ENIs are tagged with cluster %s, which is not cloud.cluster of operator.yaml: `enipoolctl migrate check` says what to do", known.OtherCluster))
	}
	p.say(false, "")
	lines := []string{"CLASS\tWAITING"}
	for _, q := range known.Queue {
		lines = append(lines, fmt.Sprintf("%s\t%d", q.Class, q.Count))
	}
	if err := p.sayTable(lines, func(int) bool { return false }); err != nil {
		return err
	}
	p.say(false, "")
	lines = []string{"ACTION\tTOKENS\tRATE\tUSUAL\tOTHERS\tCLOSED\tWAITING"}
	for _, b := range known.Budget {
		closed := "-"
		if b.Closed > 0 {
			closed = (time.Duration(b.Closed * float64(time.Second))).Round(100 * time.Millisecond).String()
		}
		others := "-"
		if b.Others > 0 {
			others = fmt.Sprintf("%.3g/s", b.Others)
		}
		lines = append(lines, fmt.Sprintf("%s\t%.0f\t%.3g/s\t%.3g/s\t%s\t%s\t%d", b.Action, b.Tokens, b.PerSecond, b.Usual, others, closed, b.Waiting))
	}
	return p.sayTable(lines, func(i int) bool { return i > 0 && isThrottled(known.Budget[i-1]) })
}

// isThrottled tells whether the cloud has refused calls of an action of late.
func isThrottled(b operator.Tokens) bool { return b.Closed > 0 || b.PerSecond < b.Usual }
