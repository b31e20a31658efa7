package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// picture is where something is shown once, in a format.
type picture struct {
	io.Writer
	output string
	red    map[string]bool // lines that tell of something bad
}

// say writes a line. What agents and the cloud have written into objects moves no cursor and gives a terminal no order.
func (p *picture) say(bad bool, line string) {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
	if fmt.Fprintln(p, line); bad {
		p.red[line] = true
	}
}

// view is a command that shows something once or, with -w, again after each change.
type view struct {
	output  string
	formats []string
	watch   bool
}

// register adds the flags of a view, which with -w is shown again when it says.
func (v *view) register(cmd *cobra.Command, when string) {
	cmd.Flags().StringVarP(&v.output, "output", "o", "table", strings.Join(v.formats, ", "))
	cli.Offer(cmd, "output", v.formats...)
	cmd.Flags().BoolVarP(&v.watch, "watch", "w", false, "show again "+when+", until interrupted")
}

func (v *view) check() error {
	if !slices.Contains(v.formats, v.output) {
		return fmt.Errorf("--output %s: must be one of %s", cli.Spelled(v.output), strings.Join(v.formats, ", "))
	}
	return nil
}

// run returns what a command does that shows one kind of object.
func (v *view) run(reach *Flags, show func(context.Context, *API, *picture) error, kind string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := v.check(); err != nil {
			return err
		}
		k, err := reach.Reach()
		if err != nil {
			return err
		}
		changed := make(chan struct{}, 1)
		if v.watch {
			go k.API.watchNetworks(cmd.Context(), kind, changed)
		}
		return v.showAll(cmd, reach, changed, func(ctx context.Context, p *picture) error { return show(ctx, k.API, p) })
	}
}

const (
	// pause is how long after a picture the next one comes: lists of thousands of nodes are megabytes.
	pause = 2 * time.Second
	// stale is how old a picture on a terminal gets: it has times in it, and that nobody leads any more changes no object.
	stale = 15 * time.Second
)

// showAll shows once, or until it is interrupted again after each change: nil where what changes can't be watched, and is shown again after each pause.
// On a terminal each picture replaces the one before, with what is bad in red.
func (v *view) showAll(cmd *cobra.Command, reach *Flags, changed <-chan struct{}, show func(context.Context, *picture) error) error {
	ctx, out, screen := cmd.Context(), cmd.OutOrStdout(), cli.ScreenOf(cmd.OutOrStdout())
	red := map[string]bool{}
	isBad := func(line string) bool { return red[line] }
	once := func(out io.Writer) error {
		clear(red)
		within, cancel := context.WithTimeout(ctx, reach.Timeout)
		defer cancel()
		return show(within, &picture{out, v.output, red})
	}
	if !v.watch {
		return cli.Painted(out, isBad, once)
	}
	draw := func() error { return once(out) }
	if screen != nil {
		draw = func() error { return screen.Show(isBad, once) }
	}
	if err := draw(); err != nil {
		return err // what never was shown is told wrong
	}
	for next(ctx, changed, screen != nil) {
		if err := draw(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "enipoolctl: %v; it is tried again\n", err)
		}
	}
	return nil
}

// next waits until something is to be shown again, and returns false if ctx has ended. What changes during the pause is shown by the next picture.
func next(ctx context.Context, changed <-chan struct{}, onScreen bool) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
	}
	if changed == nil {
		return true
	}
	var old <-chan time.Time
	if onScreen {
		old = time.After(stale - pause)
	}
	select {
	case <-ctx.Done():
		return false
	case <-old:
	case <-changed:
	}
	return true
}
