package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/simulate/report"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// tuneFlags are the flags of tune as they are typed: those of simulate, and the limit.
type tuneFlags struct {
	playFlags
	weighing simulate.Weighing
	ready    int // addresses that each node is to have free at the end
}

// TuneCommand returns the command tune of a release.
func TuneCommand(release string) *cobra.Command {
	f := &tuneFlags{playFlags: playFlags{release: release}}
	cmd := &cobra.Command{
		Use:   "tune --trace FILE | --workload KIND | --cloud CLOUD",
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

Of --workload start and surge all pods come at once, and the cloud's limits make them
wait. Settings that are at most a tenth slower than the fastest are compared then, or
those within --max-wait. They are to keep --ready addresses for the pods that come
next, and idle addresses cost what those at the end do in a day.
With --operator an operator calls the cloud for all nodes, and a part of the pods may
belong to topologies: the section has the places that nodes keep for those.

The exit code is 1 if no setting keeps within --max-wait; the one that comes nearest is shown.`,
		Example: `  enipoolctl tune --trace test/traces/alibaba-gpu-2023.csv --max-wait 1s
  enipoolctl tune --cloud aws --nodes 1000 --operator --topology-share 20
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
	f.operated.register(cmd, "an operator calls the cloud for all nodes, whose pods come at once: start and surge; then --nodes may be up to 1000000")
	cmd.Flags().DurationVar(&f.weighing.Change, "change-worth", 4*time.Hour, "how long an address may be idle to save one change in the cloud")
	cli.Offer(cmd, "change-worth", "0s", "1h", "4h", "24h")
	cmd.Flags().IntVar(&f.ready, "ready", 0, "of start and surge: addresses that a node is to have free for the pods that come next; default: a tenth of its pods")
	cli.Offer(cmd, "ready")
	cmd.Flags().DurationVar(&f.weighing.MaxWait, "max-wait", time.Second, "how long 99 of 100 pods may wait for their address; default of start and surge: a tenth longer than by the fastest setting")
	cli.Offer(cmd, "max-wait", "0s", "500ms", "1s", "3s")
	cmd.SetFlagErrorFunc(cli.WrongValue)
	return cmd
}

// usualLater is how much later than by the fastest setting, in percent, 99 of 100 pods that come at once may have their address if nobody says otherwise:
// the cloud's limits make them wait for minutes.
const usualLater = 10

func (f *tuneFlags) run(cmd *cobra.Command) error {
	f.settleDefaults()
	if err := f.weigh(); err != nil {
		return err
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
	pods := s.load.Peak()
	if s.operated = s.fleet != nil; s.operated {
		base.Pool.TopologyPlaces = cmp.Or(s.fleet.Topologies.Places, base.Pool.TopologyPlaces)
		pods -= s.fleet.Topologies.Pods
	}
	// A full node has none to spare.
	room := base.Pool.Most(s.world.Limits, []eni.Family{eni.IPv4}, s.world.MaxPods) - pods
	f.weighing.Ready = len(s.load.Nodes) * min(f.ready, max(0, room))
	advice, err := simulate.Tune(base, f.weighing, func(list []simulate.Setting) ([]simulate.Result, error) {
		if s.settings = list; s.operated && !f.Given("duration") {
			s.load.Duration = max(s.load.Duration, s.longest())
		}
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

// weigh decides what the search goes by.
func (f *tuneFlags) weigh() error {
	w, longest, most := &f.weighing, mostWait, 10000*time.Hour
	if w.AtOnce = simulate.AtOnce(f.load); w.AtOnce {
		longest = mostPlayed
	}
	switch {
	case w.MaxWait < 0 || w.MaxWait > longest:
		return fmt.Errorf("--max-wait %s: must be 0s to %s", keys.ShortDuration(w.MaxWait), keys.ShortDuration(longest))
	case w.Change < 0 || w.Change > most:
		return fmt.Errorf("--change-worth %s: must be 0s to %s", keys.ShortDuration(w.Change), keys.ShortDuration(most))
	case f.ready < 0:
		return fmt.Errorf("--ready %d: must be at least 0", f.ready)
	case f.ready > 0 && !w.AtOnce:
		return errors.New("--ready: is for --workload start and surge; other loads tell what pods that come next need")
	}
	if w.AtOnce && !f.Given("max-wait") {
		w.Later = usualLater
	}
	if w.AtOnce && !f.Given("ready") {
		f.ready = (f.pods + 9) / 10
	}
	return nil
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
