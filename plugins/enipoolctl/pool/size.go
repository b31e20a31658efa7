package pool

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config/renamed"
	"github.com/enipool/enipool/pkg/scale"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// mostPods is more than any node runs.
const mostPods = 1 << 16

// sizeFlags are the numbers of the equation as they are typed.
type sizeFlags struct {
	batch, used, primaries int
	minFree, form          string
}

// ScaleCommand returns `pool size` as it was called before it belonged to pool.
func ScaleCommand() *cobra.Command {
	return renamed.Command(sizeCommand("scale"), "enipoolctl pool size")
}

func sizeCommand(name string) *cobra.Command {
	var line sizeFlags
	var output string
	formats, forms := []string{"table", "json"}, []string{"safe", "document"}
	cmd := &cobra.Command{
		Use:   name + " --used N",
		Short: "Work out how many addresses a node should have",
		Long: `Work out how many addresses a node should have, and show the steps:

  Request = batch x ceil(min-free + used/batch)

With --primaries the primary addresses are part of the batches. The form safe
rounds used and primary addresses together. The form document takes the primary
ones off after rounding, and then fewer may be free than --min-free asks for.

It reads no node cache and needs no root.`,
		Example: `  enipoolctl pool size --batch 16 --min-free 0.5 --used 25
  enipoolctl pool size --min-free 50% --used 24 --primaries 2 --form document -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, output) {
				return fmt.Errorf("--output %s: must be one of %s", output, strings.Join(formats, ", "))
			}
			c, err := line.config()
			if err != nil {
				return err
			}
			return printExplanation(cmd.OutOrStdout(), c.Explain(line.used, line.primaries), output)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&line.batch, "batch", 16, "addresses that come and go together")
	flags.StringVar(&line.minFree, "min-free", "0.5", "least free addresses, as a share of a batch: 0.5 or 50%")
	flags.IntVar(&line.used, "used", 0, "addresses that pods use")
	flags.IntVar(&line.primaries, "primaries", 0, "primary addresses to count as part of the batches")
	flags.StringVar(&line.form, "form", "safe", "safe or document")
	flags.StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("used") // the flags exist
	cli.Offer(cmd, "form", forms...)
	cli.Offer(cmd, "output", formats...)
	cli.Offer(cmd, "batch", "8", "16", "32")
	cli.Offer(cmd, "min-free", "25%", "50%", "100%")
	cli.Offer(cmd, "used")
	cli.Offer(cmd, "primaries", "0", "1", "2")
	return cmd
}

// config checks the flags; what is wrong is said in one line.
func (f sizeFlags) config() (scale.Config, error) {
	percent, err := scale.ParseFraction(f.minFree)
	if err != nil {
		return scale.Config{}, fmt.Errorf("--min-free %w", err)
	}
	c := scale.Default()
	c.Batch, c.MinFree, c.MaxFree, c.CountPrimaries = f.batch, percent, percent+100, true
	if c.Form, err = scale.ParseForm(f.form); err != nil {
		return scale.Config{}, fmt.Errorf("--form: %w", err)
	}
	if err = errors.Join(c.Validate(), few("used", f.used), few("primaries", f.primaries)); err != nil {
		return scale.Config{}, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return c, nil
}

func few(name string, n int) error {
	if n < 0 || n > mostPods {
		return fmt.Errorf("%s: %d: must be 0 to %d", name, n, mostPods)
	}
	return nil
}

func printExplanation(out io.Writer, e scale.Explanation, output string) error {
	return cli.PrintAs(out, output, e, func() error {
		_, err := fmt.Fprintln(out, strings.Join(e.Steps, "\n"))
		return err
	})
}
