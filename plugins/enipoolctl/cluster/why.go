package cluster

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

func whyCommand(reach *Flags) *cobra.Command {
	shown := &view{formats: []string{"table", "json", "yaml"}}
	cmd := &cobra.Command{
		Use:   "why NODE",
		Short: "Say what a node wants, has and waits for, why, and when it is tried again",
		Long: `Say what a node wants, has and waits for, why, and when it is tried again: its class
and place in the queue, calls under way, causes, and what the cloud shows.

The operator that leads is asked. Where none answers, what the node's object tells is
shown with its age.`,
		Example: "  enipoolctl cluster why ip-10-0-0-7.eu-west-3.compute.internal",
		Args:    cli.OneNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := shown.check(); err != nil {
				return err
			}
			k, err := reach.Reach()
			if err != nil {
				return err
			}
			return shown.showAll(cmd, reach, nil, func(ctx context.Context, p *picture) error {
				a, err := k.Explain(ctx, args[0])
				if err != nil {
					return err
				}
				return cli.PrintAs(p, p.output, a, func() error { a.print(p, time.Now()); return nil })
			})
		},
		ValidArgsFunction: reach.CompleteNode,
	}
	shown.register(cmd, "every 2 seconds")
	return cmd
}

// Answer is all that is known of one node.
type Answer struct {
	operator.Why
	Leader Leader    `json:"leader"`
	Told   time.Time `json:"told,omitzero"`  // when the operator wrote the object last
	Away   string    `json:"away,omitempty"` // why no operator was asked: Why is what the object tells
	Shown  string    `json:"shown,omitempty"`
	Events []string  `json:"events,omitempty"`
}

// Explain returns what is known of a node, from the operator where that answers.
func (k Asker) Explain(ctx context.Context, name string) (all Answer, err error) {
	n, err := k.API.GetNetwork(ctx, name)
	if err != nil {
		return all, err
	}
	node, err := k.API.GetNode(ctx, name)
	if err != nil {
		return all, err
	}
	if n == nil && node == nil {
		return all, fmt.Errorf("the cluster has no node %s; `enipoolctl cluster nodes` lists them", name)
	}
	all.Leader = k.API.FindLeader(ctx)
	if err := k.Ask(ctx, "/why", url.Values{"node": {name}, "output": {"json"}}, &all.Why); err != nil {
		all.Away, all.Why = err.Error(), operator.Why{Node: name}
		if n != nil {
			all.Why = operator.Stated(n)
		}
	}
	if n != nil {
		all.Told = toldAt(n)
	}
	all.Shown = nodeShows(node)
	if events, err := k.API.ListEvents(ctx, name); err == nil { // they are a help where there are some
		all.Events = eventLines(events)
	}
	return all, nil
}

// nodeShows returns what the agent shows on its Node.
func nodeShows(node *corev1.Node) string {
	if node == nil {
		return "there is no such Node any more"
	}
	for _, c := range node.Status.Conditions {
		if c.Type == conditionKind {
			return fmt.Sprintf("%s %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

func eventLines(events []corev1.Event) (lines []string) {
	for _, e := range events {
		line := fmt.Sprintf("%s %s %s: %s", e.LastTimestamp.UTC().Format(time.DateTime), e.Type, e.Reason, e.Message)
		if e.Count > 1 {
			line += fmt.Sprintf(" (%d times)", e.Count)
		}
		lines = append(lines, line)
	}
	return lines
}

func (a Answer) print(p *picture, now time.Time) {
	p.say(a.Leader.isMissed(), a.Leader.Line(now))
	if a.Away != "" {
		known := "nothing is known of the node here"
		if a.Mode != "" {
			known = "what follows is what the node's object tells, as of " + age(now, a.Told) + " ago"
			if a.Told.IsZero() {
				known = "what follows is what the node's object tells, which no operator has written yet"
			}
		}
		p.say(true, known+": "+a.Away)
	}
	p.say(false, "")
	for i, line := range a.Lines(now) {
		p.say(i == 0 && (a.Waiting > 0 || a.Have == 0 && a.Want > 0) || a.isReason(line), line)
	}
	if a.Shown != "" {
		p.say(false, "")
		p.say(strings.HasPrefix(a.Shown, fmt.Sprintf("%s %s:", conditionKind, corev1.ConditionTrue)), "its Node shows: "+a.Shown)
	}
	if len(a.Events) == 0 {
		return
	}
	p.say(false, "\nevents:")
	for _, e := range a.Events {
		p.say(false, e)
	}
}

// isReason tells whether a line says why the node lacks something.
func (a Answer) isReason(line string) bool {
	line = strings.TrimSpace(line)
	return a.Wrong != "" && strings.Contains(line, a.Wrong) ||
		slices.ContainsFunc(a.Causes, func(c operator.Told) bool { return strings.HasPrefix(line, c.Reason+": ") })
}
