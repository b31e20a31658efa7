// Package simulate has the commands that play a load of pods in virtual time: simulate, which
// compares settings, and tune, which searches for one.
package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/config/renamed"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/plugins/enipoolctl/account"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// simulateFlags are the flags of simulate as they are typed.
type simulateFlags struct {
	playFlags
	compare []string
}

// playFlags are those of them that say what is played, and how that is shown.
type playFlags struct {
	release           string // what reports say that they were made with
	shared            bool   // a cloud is named, whose rates all nodes of the account share
	trace, load       string
	pods, nodes       int
	duration, stagger time.Duration
	seed              uint64

	config string

	account.InstanceFlags
	maxPods int
	account.SubnetFlags
	quota                int
	mutating, describing string
	latency              []string
	wait, lead           time.Duration

	operated
	output, html string
}

var simulateFormats = []string{"table", "json"}

// Command returns the command simulate of a release.
func Command(release string) *cobra.Command {
	f := &simulateFlags{playFlags: playFlags{release: release}}
	cmd := &cobra.Command{
		Use:     "simulate --trace FILE | --workload KIND | --cloud CLOUD",
		Short:   "Play a load of pods in virtual time and compare pool modes and settings",
		Long:    simulateLong,
		Example: simulateExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkOutput(); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	f.register(cmd)
	cmd.SetFlagErrorFunc(cli.WrongValue)
	return cmd
}

func (f *simulateFlags) register(cmd *cobra.Command) {
	f.playFlags.register(cmd)
	cmd.Flags().StringArrayVar(&f.compare, "compare", nil, "a setting to play, as MODE[:KEY=VALUE,...]; repeatable; default: --config as it is, with start and surge each mode")
	f.operated.register(cmd, "play each setting of start and surge in a cloud with an operator, too, that calls the cloud for all nodes; then --nodes may be up to 1000000")
	_ = cmd.RegisterFlagCompletionFunc("compare", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeCompare(typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// checkOutput refuses an unknown format before anything is played.
func (f *playFlags) checkOutput() error {
	if !slices.Contains(simulateFormats, f.output) {
		return fmt.Errorf("--output %s: must be one of %s", cli.Spelled(f.output), strings.Join(simulateFormats, ", "))
	}
	return nil
}

func (f *playFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.html, "html", "", "write a page with plots to this file, too")
	_ = cmd.MarkFlagFilename("html", "html")
	flags.SortFlags = false
	flags.StringVar(&f.trace, "trace", "", "a file that tells when pods came and went")
	flags.StringVar(&f.load, "workload", "", "a workload that is made up: "+strings.Join(simulate.Kinds(), ", "))
	flags.IntVar(&f.pods, "pods-per-node", 30, "pods that a node of --workload usually has at once")
	flags.IntVar(&f.nodes, "nodes", 1, "nodes, 1 to 10000; a trace that names nodes has those")
	flags.DurationVar(&f.duration, "duration", 24*time.Hour, "how long to play, at most 744h; default of a trace: to its last line, of start and surge: 30m")
	flags.DurationVar(&f.stagger, "stagger", 0, "over how long the nodes of a trace begin, one after the other")
	flags.Uint64Var(&f.seed, "seed", 1, "of all that is left to chance: the same seed gives the same numbers")
	flags.StringVar(&f.config, "config", "", "a file of the agent that settings start from; default: the agent's defaults")
	f.InstanceFlags.Register(cmd, "type of a node, like m5.large or bcc.g5.c16m64; default: 8 ENIs of 30 addresses, with --cloud aws m5.xlarge, with baidu bcc.g5.c4m16")
	flags.IntVar(&f.maxPods, "max-pods", 0, "most pods of a node; default: 110, or what the load needs if that is more, or what a node carries if that is less")
	f.SubnetFlags.Register(cmd, "a subnet, as [ID=]CIDR; repeatable; default: one with room for all")
	flags.StringVar(&f.Cloud, "cloud", "", "aws or baidu: addresses of a subnet that are kept, requests that calls are made of and that pass; default: aws with an instance type of AWS, else neither; alone it plays --workload start")
	flags.IntVar(&f.quota, "eni-quota", 0, "ENIs that the account may have, the nodes' primary ENIs among them; 0 for any number")
	flags.StringVar(&f.mutating, "mutating", "", "calls that change something, of all nodes together, as BURST/PER_SECOND, or none for any number; in a cloud: each kind of request; default: none, on aws 100/5")
	flags.StringVar(&f.describing, "describing", "", "calls that only look, as --mutating; default: none, on aws 100/20")
	flags.StringArrayVar(&f.latency, "latency", nil, "how long calls take, as CALL=BASE[+JITTER]; repeatable; default: "+strings.Join(usualLatencies(), " "))
	flags.DurationVar(&f.wait, "wait", 5*time.Second, "how long an ADD waits for an address: the plugin's waitForAddress")
	flags.DurationVar(&f.lead, "lead", 0, "how long before a pod's ADD the agent knows of it")
	flags.StringVarP(&f.output, "output", "o", "table", "table or json")
	renamed.Flag(cmd, "load", "workload")
	renamed.Flag(cmd, "pods", "pods-per-node")
	f.complete(cmd)
}

// complete makes the shell offer values.
func (f *playFlags) complete(cmd *cobra.Command) {
	f.InstanceFlags.Complete(cmd)
	f.SubnetFlags.Complete(cmd)
	var kinds []string
	for _, k := range simulate.Kinds() {
		kinds = append(kinds, k+"\t"+simulate.Describe(k))
	}
	cli.Offer(cmd, "workload", kinds...)
	cli.Offer(cmd, "output", simulateFormats...)
	cli.Offer(cmd, "duration", "1h", "24h", "168h")
	cli.Offer(cmd, "max-pods", "32", "64", "110", "128", "256")
	cli.Offer(cmd, "mutating", "none", "100/5")
	cli.Offer(cmd, "describing", "none", "100/20")
	for _, name := range []string{"pods-per-node", "nodes", "stagger", "seed", "eni-quota", "wait", "lead"} {
		cli.Offer(cmd, name)
	}
	_ = cmd.RegisterFlagCompletionFunc("latency", cobra.FixedCompletions(usualLatencies(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("trace", "csv")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}
