package migrate

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster"
)

// nodeFlags are the flags of `migrate node` as they are typed.
type nodeFlags struct {
	to     string
	within time.Duration
	dryRun bool
}

// targets are the modes that --to names.
var targets = map[string]crd.Mode{"operator": crd.Operator, "self": crd.Self}

func nodeCommand(f *cluster.Flags) *cobra.Command {
	line := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "node NAME",
		Short: "Give the calls of one node to the operator, or with --to self back to its agent",
		Long: `Give the calls of one node to the operator, or with --to self back to its agent. The
node's agent is started again with the agent.yaml that its ConfigMap has now, whose
cloud.provider must say the same; each phase is told until the other side calls the
cloud. No pod of others and no address is touched; pods start and stop meanwhile.

The exit code is 1 if that is not reached in time; it goes on by itself then.`,
		Example: `  enipoolctl migrate node ip-10-0-0-7.eu-west-3.compute.internal
  enipoolctl migrate node ip-10-0-0-7.eu-west-3.compute.internal --to self`,
		Args:              cli.OneNode,
		ValidArgsFunction: f.CompleteNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			to, known := targets[line.to]
			if !known {
				return fmt.Errorf("--to %s: must be operator or self", cli.Spelled(line.to))
			}
			k, err := f.Reach()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), line.within)
			defer cancel()
			m := move{api: k.API, ask: k, node: args[0], to: to, dryRun: line.dryRun, out: cmd.OutOrStdout(), every: time.Second}
			return m.run(ctx)
		},
	}
	cmd.Flags().StringVar(&line.to, "to", "operator", "who is to call the cloud: operator or self")
	cmd.Flags().DurationVar(&line.within, "within", 10*time.Minute, "how long to wait for the end")
	cmd.Flags().BoolVar(&line.dryRun, "dry-run", false, "only say what is in the way and what would be done")
	cli.Offer(cmd, "to", "operator", "self")
	cli.Offer(cmd, "within", "5m", "10m")
	return cmd
}

// move brings one node to another mode.
type move struct {
	api    *cluster.API
	ask    cluster.Asker
	node   string
	to     crd.Mode
	dryRun bool
	out    io.Writer
	every  time.Duration // the object is read
}

func (m move) say(format string, args ...any) { fmt.Fprintf(m.out, format+"\n", args...) }

func (m move) run(ctx context.Context) error {
	n, err := m.api.GetNetwork(ctx, m.node)
	if err != nil {
		return err
	}
	if phase, done := phaseOf(n, m.to); done {
		m.say("%s: %s; there is nothing to do", m.node, phase)
		return nil
	}
	agent, err := m.prepare(ctx)
	if err != nil {
		return err
	}
	// From here on the node is on its way, whoever waits for it.
	if m.dryRun {
		m.say("%s: nothing is in the way; pod %s would be deleted, so that its DaemonSet starts the agent again", m.node, agent.Name)
		return nil
	}
	if err := m.api.DeletePod(ctx, agent); err != nil {
		return err
	}
	m.say("%s: pod %s was deleted; its DaemonSet starts the agent again, with the agent.yaml of now", m.node, agent.Name)
	if err := m.follow(ctx); err != nil {
		return err
	}
	if m.to == crd.Operator {
		m.say("to go back: set cloud.provider in agent.yaml to what it was, and run enipoolctl migrate node %s --to self", m.node)
	} else {
		m.say("to give its calls to the operator again: set cloud.provider: operator in agent.yaml, and run enipoolctl migrate node %s", m.node)
	}
	return nil
}

// prepare returns the node's agent, or what has to be done before it may be started again.
func (m move) prepare(ctx context.Context) (*corev1.Pod, error) {
	node, err := m.api.GetNode(ctx, m.node)
	switch {
	case err != nil:
		return nil, err
	case node == nil:
		return nil, fmt.Errorf("the cluster has no node %s; `enipoolctl cluster nodes` lists them", m.node)
	case node.Spec.ProviderID == "" && m.to == crd.Operator:
		return nil, fmt.Errorf("node %s has no provider ID: an operator would not know its instance; what starts the kubelet, or the cloud's controllers, set it", m.node)
	}
	// Nobody calls the cloud between one side and the other: with nobody who leads it would stay like that.
	if l := m.api.FindLeader(ctx); !l.Leads {
		return nil, fmt.Errorf("%s; start an operator (conf/kubernetes/operator) before a node is given to it or taken from it", l.Line(time.Now()))
	}
	// One that observes leads too. Where its pages are not reached nobody knows.
	var r operator.Report
	if err := m.ask.Ask(ctx, "/budget", nil, &r); err == nil && r.Observe {
		return nil, fmt.Errorf("operator %s only observes: remove observe from operator.yaml first", m.api.FindLeader(ctx).Holder)
	}
	pods, err := m.api.ListPods(ctx, "enipool-agent", m.node)
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 || pods[0].DeletionTimestamp != nil {
		return nil, fmt.Errorf("namespace %s has %d pods of enipool-agent on node %s, want one that is not about to end: wait for its rollout, or name another --namespace", m.api.Namespace, len(pods), m.node)
	}
	return &pods[0], m.checkFile(ctx, &pods[0])
}

// checkFile returns an error if the agent would start with a configuration that says something else.
func (m move) checkFile(ctx context.Context, agent *corev1.Pod) error {
	name, key := "enipool-agent", "agent.yaml"
	for _, v := range agent.Spec.Volumes {
		if v.Name == "config" && v.ConfigMap != nil {
			name = v.ConfigMap.Name
			for _, item := range v.ConfigMap.Items { // those of a node group have another file of it
				if item.Path == "agent.yaml" {
					key = item.Key
				}
			}
		}
	}
	text, err := m.api.GetFile(ctx, name, key)
	if err != nil {
		return err
	}
	conf, err := agentconf.Parse([]byte(text))
	if err != nil {
		return fmt.Errorf("%s of ConfigMap %s: %w", key, name, err)
	}
	is := conf.Cloud.Provider // agents take another one over only at a start
	switch {
	case m.to == crd.Operator && is != agentconf.Operator:
		return fmt.Errorf("%s of ConfigMap %s says cloud.provider: %s; set it to operator first: agents that run go on as they are until they are started again", key, name, is)
	case m.to == crd.Self && is == agentconf.Operator:
		return fmt.Errorf("%s of ConfigMap %s says cloud.provider: operator; set it to the node's cloud first: agents that run go on as they are until they are started again", key, name)
	}
	return nil
}

// follow tells each phase until the last one is reached.
func (m move) follow(ctx context.Context) error {
	began, said := time.Now(), ""
	for {
		n, err := m.api.GetNetwork(ctx, m.node)
		phase, done := phaseOf(n, m.to)
		if err != nil {
			phase, done = err.Error(), false // it is tried again
		}
		if phase != said && ctx.Err() == nil {
			m.say("%6s  %s", time.Since(began).Truncate(time.Second), phase)
			said = phase
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			m.say("not reached in time; it goes on by itself, and `enipoolctl cluster why %s` says what it waits for", m.node)
			return &cli.ExitError{Code: 1}
		case <-time.After(m.every):
		}
	}
}

// phaseOf says how far a node is on its way to a mode, and whether it is there.
func phaseOf(n *crd.NodeNetwork, to crd.Mode) (phase string, done bool) {
	if to == crd.Self {
		return phaseBack(n)
	}
	switch {
	case n == nil:
		return "its agent has not asked the operator yet", false
	case n.Spec.Mode != crd.Operator:
		return "its agent calls the cloud itself", false
	case n.Status.Mode == crd.Operator:
		return fmt.Sprintf("the operator calls the cloud: %d of %d slots%s", n.Status.Slots, n.Spec.Slots, causeOf(n)), true
	case n.Status.Mode == crd.Joining:
		return "the operator ends what the agent had begun, and describes the node", false
	}
	return "its agent makes no more calls and has asked the operator", false
}

// phaseBack is phaseOf on the way back.
func phaseBack(n *crd.NodeNetwork) (phase string, done bool) {
	switch {
	case n == nil, n.Spec.Mode == crd.Self && (n.Status.Mode == crd.Self || n.Status.Mode == ""):
		return "its agent calls the cloud itself", true
	case n.Spec.Mode != crd.Self:
		return "its agent leaves the calls to the operator", false
	case n.Status.Mode == crd.Leaving:
		return fmt.Sprintf("the operator ends what it had begun; %d addresses still go back, %d are quarantined", len(n.Status.Releasing), len(n.Status.Quarantined)), false
	}
	return "its agent wants the calls back and has told the operator", false
}

// causeOf says why a node has less than it asks for.
func causeOf(n *crd.NodeNetwork) string {
	if len(n.Status.Causes) == 0 {
		return ""
	}
	c := n.Status.Causes[0]
	return "; " + strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
}
