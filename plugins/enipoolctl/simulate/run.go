package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/simulate"
	"github.com/enipool/enipool/pkg/simulate/report"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
)

// run plays all settings and shows the report. Whether the page can be written is
// found out before.
func (f *simulateFlags) run(cmd *cobra.Command) error {
	page, err := f.beginPage()
	if err != nil {
		return err
	}
	defer page.Discard()
	// Which modes are compared depends on the load, which depends on the cloud.
	f.settleDefaults()
	s, err := f.prepare(cmd.Context(), f.comparedModes())
	if err != nil {
		return err
	}
	results, err := s.play(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	r := report.New(f.release, s.world, s.load, results)
	r.Instance.Name = s.instanceType
	if err := f.writePage(page, r, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if f.output == "json" {
		var text bytes.Buffer
		if err := r.JSON(&text); err != nil {
			return err
		}
		return cli.PrintAs(cmd.OutOrStdout(), f.output, json.RawMessage(text.Bytes()), nil)
	}
	return r.Table(cmd.OutOrStdout(), plotWidth(cmd.OutOrStdout()))
}

// beginPage begins the page that is asked for, nil if none is.
func (f *playFlags) beginPage() (*cli.PageFile, error) {
	if !f.Given("html") {
		return nil, nil
	}
	page, err := cli.NewPageFile(f.html)
	if err != nil {
		return nil, fmt.Errorf("--html %s: %w", cli.Spelled(f.html), err)
	}
	return page, nil
}

// writePage writes the page, if one is asked for, and says so.
func (f *playFlags) writePage(page *cli.PageFile, r report.Report, said io.Writer) error {
	if page == nil {
		return nil
	}
	if err := page.Write(r.HTML); err != nil {
		return fmt.Errorf("--html %s: %w", cli.Spelled(f.html), err)
	}
	fmt.Fprintf(said, "wrote %s\n", f.html)
	return nil
}

var errInterrupted = errors.New("interrupted before all settings were played")

// prepare is readInput. It returns early if ctx ends, also while millions of pods are still being
// made up.
func (f *playFlags) prepare(ctx context.Context, compare []string) (simulation, error) {
	type outcome struct {
		simulation
		err error
	}
	made := make(chan outcome, 1)
	go func() {
		s, err := f.readInput(compare)
		made <- outcome{s, err}
	}()
	select {
	case o := <-made:
		return o.simulation, o.err
	case <-ctx.Done():
		return simulation{}, errInterrupted
	}
}

// plotWidth is how long lines over time may be on a terminal, 0 elsewhere: their
// names and numbers stand beside them.
func plotWidth(w io.Writer) int {
	const beside = 30
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return min(max(width-beside, 20), 100)
		}
	}
	return 0
}

// play plays the load with all settings, as many at once as there are CPUs. The
// results are in the order of the settings.
func (s simulation) play(ctx context.Context, screen io.Writer) ([]simulate.Result, error) {
	debug.SetGCPercent(400) // memory is plenty, and a tenth of the time goes otherwise
	plays := s.plays()
	p := newProgress(screen, len(plays), s.load.Duration)
	defer p.end()
	results := make([]simulate.Result, len(plays))
	g, running := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, play := range plays {
		g.Go(func() (err error) {
			results[i], err = play(running, func(played time.Duration) { p.showPlayed(i, played) })
			return err
		})
	}
	err := g.Wait()
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return results, err
}

// plays returns what is played: each setting, and beside it the same with an operator. Of more nodes than agents are played, and where only it is
// asked for, that is left.
func (s simulation) plays() (list []func(context.Context, func(time.Duration)) (simulate.Result, error)) {
	for _, setting := range s.settings {
		if !s.operated && len(s.load.Nodes) <= simulate.MostNodes {
			list = append(list, func(ctx context.Context, done func(time.Duration)) (simulate.Result, error) {
				return simulate.Run(ctx, s.world, s.load, setting, done)
			})
		}
		if s.fleet == nil {
			continue
		}
		list = append(list, func(ctx context.Context, done func(time.Duration)) (simulate.Result, error) {
			named := setting
			if !s.operated {
				named.Name += ", operator"
			}
			r, err := simulate.Operate(ctx, s.world, *s.fleet, named, s.load.Duration)
			done(s.load.Duration)
			return r, asFlag(err)
		})
	}
	return list
}

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	bar *progressbar.ProgressBar // nil if there is no terminal

	mu    sync.Mutex
	parts []time.Duration // played of each setting
}

func newProgress(screen io.Writer, settings int, duration time.Duration) *progress {
	p := &progress{parts: make([]time.Duration, settings)}
	if file, ok := screen.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions64(int64(settings)*int64(duration), progressbar.OptionSetWriter(late{file, time.Now().Add(quick)}),
			progressbar.OptionSetDescription("simulating"), progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	return p
}

// showPlayed takes in how much of a setting was played by now.
func (p *progress) showPlayed(setting int, d time.Duration) {
	if p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	more := d - p.parts[setting]
	p.parts[setting] = d
	_ = p.bar.Add64(int64(more))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// quick is how long it may take without a bar.
const quick = time.Second

// late writes nothing before its time: what is done by then needs no bar.
type late struct {
	screen *os.File
	from   time.Time
}

func (l late) Write(text []byte) (int, error) {
	if time.Now().Before(l.from) {
		return len(text), nil
	}
	return l.screen.Write(text)
}
