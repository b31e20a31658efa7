package simulate

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/simulate/report"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// tuneFlags are the flags of tune as they are typed: those of simulate, and the limit.
type tuneFlags struct {
	playFlags
	weighing simulate.Weighing
}

// TuneCommand returns the command tune of a release.
func TuneCommand(release string) *cobra.Command {
	f := &tuneFlags{playFlags: playFlags{release: release}}
	cmd := &cobra.Command{
		Use:   "tune --trace FILE | --workload KIND",
		Short: "Search the pool's settings for a load and recommend one",
		Long: `Search the pool's settings for a load and recommend one, with the reasons, the
runner-up, and the section "pool" to paste into the agent's file.

Some fifty settings of all modes are played as enipoolctl simulate plays them, whose
help explains loads, nodes and cloud. Of those by which 99 of 100 pods wait at most
--max-wait and no ADD fails, the one that costs the least is best. Idle addresses cost,
and so do changes in the cloud: --change-worth says how long an address may be idle to
save one. Take more where the account's calls are scarce, and less where the subnet
is. What the fewest idle addresses and the fewest changes would be is said too. The
runner-up is the best one of another size or mode.

The exit code is 1 if no setting keeps within --max-wait; the one that comes nearest is shown.`,
		Example: `  enipoolctl tune --trace test/traces/alibaba-gpu-2023.csv --max-wait 1s
  enipoolctl tune --workload burst --pods-per-node 40 --max-wait 3s --instance-type m5.large --config agent.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkOutput(); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	f.register(cmd)
	cmd.Flags().DurationVar(&f.weighing.Change, "change-worth", 4*time.Hour, "how long an address may be idle to save one change in the cloud")
	cli.Offer(cmd, "change-worth", "0s", "1h", "4h", "24h")
	cmd.Flags().DurationVar(&f.weighing.MaxWait, "max-wait", time.Second, "how long 99 of 100 pods may wait for their address")
	cli.Offer(cmd, "max-wait", "0s", "500ms", "1s", "3s")
	cmd.SetFlagErrorFunc(cli.WrongValue)
	return cmd
}

func (f *tuneFlags) run(cmd *cobra.Command) error {
	if f.weighing.MaxWait < 0 || f.weighing.MaxWait > mostWait {
		return fmt.Errorf("--max-wait %s: must be 0s to %s", keys.ShortDuration(f.weighing.MaxWait), keys.ShortDuration(mostWait))
	}
	if most := 10000 * time.Hour; f.weighing.Change < 0 || f.weighing.Change > most {
		return fmt.Errorf("--change-worth %s: must be 0s to %s", keys.ShortDuration(f.weighing.Change), keys.ShortDuration(most))
	}
	page, err := f.beginPage()
	if err != nil {
		return err
	}
	defer page.Discard()
	s, err := f.prepare(cmd.Context(), nil)
	if err != nil {
		return err
	}
	base := s.settings[0].Config // without --compare it is the file's, or the default
	advice, err := simulate.Tune(base, f.weighing, func(list []simulate.Setting) ([]simulate.Result, error) {
		s.settings = list
		return s.play(cmd.Context(), cmd.ErrOrStderr())
	})
	if err != nil {
		return err
	}
	if err := f.writePage(page, adviceReport(s, advice), cmd.ErrOrStderr()); err != nil {
		return err
	}
	show := printAdvice
	if f.output == "json" {
		show = printAdviceJSON
	}
	if err := show(cmd.OutOrStdout(), s, advice); err != nil || advice.Met {
		return err
	}
	return &cli.ExitError{Code: 1}
}

// advisedResults returns the results that people compare: of the setting to take, the
// runner-up, and the one that the search began with, each once.
func advisedResults(a simulate.Advice) []simulate.Result {
	var list []simulate.Result
	for _, c := range []simulate.Candidate{a.Best, a.RunnerUp, a.Base} {
		seen := slices.ContainsFunc(list, func(r simulate.Result) bool { return r.Name == c.Name })
		if c.Name != "" && !seen {
			list = append(list, c.Result)
		}
	}
	return list
}

// adviceWord is what the best setting is called.
func adviceWord(a simulate.Advice) string {
	if !a.Met {
		return "nearest"
	}
	return "recommended"
}

// adviceReport is the report of what people compare, with the verdict.
func adviceReport(s simulation, a simulate.Advice) report.Report {
	r := report.New(s.release, s.world, s.load, advisedResults(a))
	r.Instance.Name = s.instanceType
	r.Verdict = &report.Verdict{Head: adviceWord(a) + ": " + a.Best.Name, Reasons: a.Reasons, File: poolText(a.Best.Config.Pool)}
	return r
}

// printAdvice prints the advice for people.
func printAdvice(out io.Writer, s simulation, advice simulate.Advice) error {
	r := adviceReport(s, advice)
	if err := r.Table(out, plotWidth(out)); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%-11s  %s\n", adviceWord(advice), advice.Best.Name)
	for _, reason := range advice.Reasons {
		fmt.Fprintf(out, "  - %s\n", reason)
	}
	fmt.Fprintf(out, "runner-up    %s\n\nfor the agent's file:\n\n%s", advice.RunnerUp.Name, poolText(advice.Best.Config.Pool))
	return nil
}

// printAdviceJSON prints the advice for programs.
func printAdviceJSON(out io.Writer, _ simulation, advice simulate.Advice) error {
	type candidate struct {
		Setting string          `json:"setting"`
		Config  string          `json:"config"`
		Result  simulate.Result `json:"result"`
	}
	of := func(c simulate.Candidate) candidate {
		c.Result.Series = nil
		return candidate{c.Name, poolText(c.Config.Pool), c.Result}
	}
	return cli.PrintAs(out, "json", struct {
		Met      bool      `json:"met"`
		Best     candidate `json:"best"`
		RunnerUp candidate `json:"runnerUp"`
		Base     candidate `json:"base"`
		Tried    int       `json:"tried"`
		Kept     int       `json:"kept"`
		Reasons  []string  `json:"reasons"`
	}{advice.Met, of(advice.Best), of(advice.RunnerUp), of(advice.Base), advice.Tried, advice.Kept, advice.Reasons}, nil)
}
