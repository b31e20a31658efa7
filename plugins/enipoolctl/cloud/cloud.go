// Package cloud is the command that checks that an agent can work with the node's cloud.
package cloud

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/clouds"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// agentFile is where an agent that was installed by hand has its configuration.
const agentFile = "/etc/enipool/agent.yaml"

// checkFlags are the flags of `cloud check` as they are typed.
type checkFlags struct {
	config, output string
	timeout        time.Duration
	verbose        bool
}

// Command returns the command cloud.
func Command() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "cloud",
		Short: "The node's cloud: check that an agent can work with it",
	}, checkCommand())
}

func checkCommand() *cobra.Command {
	line := &checkFlags{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look at credentials, permissions, limits, subnets and clock before anything is installed",
		Long: `Look at credentials, permissions, limits, subnets and clock before anything is
installed: what works, what does not, and what to do about it.

It runs on the node itself, with the file that its agent will have, and asks the
cloud what the agent would ask. It changes nothing: where a permission to change
something is looked at, the cloud is asked for a dry run. Baidu's API has none:
there only what the check reads is tried.

Exit codes: 0 nothing is broken, 1 something is, 2 it failed, or could not ask for
all: the account has made too many calls, and the last line says what is left.`,
		Example: `  enipoolctl cloud check --config agent.yaml
  enipoolctl cloud check --config agent.yaml -v       # and what is believed of the cloud without a source
  enipoolctl cloud check --config agent.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return line.run(cmd) },
	}
	cmd.Flags().StringVar(&line.config, "config", agentFile, "the file that the agent has, or will have")
	cmd.Flags().StringVarP(&line.output, "output", "o", "table", "table or json")
	cmd.Flags().DurationVar(&line.timeout, "timeout", time.Minute, "how long all of it may take")
	cmd.Flags().BoolVarP(&line.verbose, "verbose", "v", false, "also list what enipool believes of the cloud that no page of its documentation says")
	cli.Offer(cmd, "output", "table", "json")
	cli.Offer(cmd, "timeout", "10s", "1m")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // the flag exists
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command) error {
	if f.output != "table" && f.output != "json" {
		return fmt.Errorf("--output %s: must be table or json", cli.Spelled(f.output))
	}
	findings, beliefs, err := f.ask(cmd.Context())
	if err != nil {
		return err
	}
	show := showFindings
	if f.output == "json" {
		show = showFindingsJSON
	}
	if err := show(cmd.OutOrStdout(), findings, beliefs); err != nil {
		return err
	}
	return verdictOn(findings)
}

// ask asks the cloud all that the agent would ask.
func (f *checkFlags) ask(ctx context.Context) (cloud.Findings, []cloud.Belief, error) {
	conf, err := f.readConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := clouds.Open(conf, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	checker, ok := client.(cloud.Checker)
	if !ok {
		return nil, nil, fmt.Errorf("there is nothing to check of the cloud %q; the key cloud.provider names another one", conf.Cloud.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var found cloud.Findings
	for _, text := range conf.Warnings {
		found.Say("agent.yaml", cloud.Careful, "change the key before the next release is installed", "%s", text)
	}
	found = append(found, checker.Check(ctx)...)
	var beliefs []cloud.Belief
	if b, tells := client.(cloud.Believer); tells && f.verbose {
		beliefs = b.Beliefs()
	}
	return found, beliefs, nil
}

// Findings are what `cloud check` finds by an agent's configuration file.
func Findings(ctx context.Context, config string, timeout time.Duration) (cloud.Findings, error) {
	found, _, err := (&checkFlags{config: config, timeout: timeout}).ask(ctx)
	return found, err
}

// verdictOn is the exit code, nil for 0. What is broken is so whatever was not asked for.
func verdictOn(findings []cloud.Finding) error {
	has := func(v cloud.Verdict) bool {
		return slices.ContainsFunc(findings, func(f cloud.Finding) bool { return f.Verdict == v })
	}
	switch {
	case has(cloud.Broken):
		return &cli.ExitError{Code: 1}
	case has(cloud.Unasked):
		return &cli.ExitError{Code: 2}
	}
	return nil
}

// readConfig returns what the agent would read.
func (f *checkFlags) readConfig() (agentconf.Config, error) {
	text, err := os.ReadFile(f.config)
	if err != nil {
		return agentconf.Config{}, fmt.Errorf("--config: %w; conf/agent.yaml has every key", err)
	}
	conf, err := agentconf.Parse(text)
	if err != nil {
		return agentconf.Config{}, fmt.Errorf("--config %s: %w", f.config, err)
	}
	if conf.Node = cmp.Or(conf.Node, os.Getenv("NODE_NAME")); conf.Node == "" {
		conf.Node, _ = os.Hostname() // the agent says what is wrong with it
	}
	return conf, nil
}

func showFindings(out io.Writer, findings []cloud.Finding, beliefs []cloud.Belief) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tVERDICT\tDETAIL")
	for _, f := range findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.What, f.Verdict, f.Detail)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var todo strings.Builder
	for _, f := range findings {
		if f.Fix != "" && f.Verdict != cloud.Unasked {
			fmt.Fprintf(&todo, "  %s: %s\n", f.What, f.Fix)
		}
	}
	if todo.Len() > 0 {
		fmt.Fprintf(out, "\nTo do:\n%s", todo.String())
	}
	if err := showUnsourced(out, beliefs); err != nil {
		return err
	}
	return showUnasked(out, findings)
}

// showUnasked is the last line, which nobody overlooks: what the cloud had no time for.
func showUnasked(out io.Writer, findings []cloud.Finding) error {
	var whats []string
	again := 0
	for _, f := range findings {
		if f.Verdict == cloud.Unasked {
			whats, again = append(whats, f.What), max(again, f.TryAgain)
		}
	}
	if len(whats) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\nNot checked, for the account has made too many calls: %s. Run this again in %d s.\n", strings.Join(whats, ", "), again)
	return err
}

// showUnsourced lists the beliefs without a source: where the cloud behaves differently
// from what enipool expects, they are what to doubt first.
func showUnsourced(out io.Writer, beliefs []cloud.Belief) error {
	var without strings.Builder
	for _, b := range beliefs {
		if b.Source == "" {
			fmt.Fprintf(&without, "  %s\n", b.What)
		}
	}
	if without.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\nBelieved of this cloud without a page that says so:\n%s", without.String())
	return err
}

func showFindingsJSON(out io.Writer, findings []cloud.Finding, beliefs []cloud.Belief) error {
	all := map[string]any{"findings": findings}
	if len(beliefs) > 0 {
		all["beliefs"] = beliefs
	}
	return cli.PrintAs(out, "json", all, nil)
}
