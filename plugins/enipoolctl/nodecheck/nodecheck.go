// Package nodecheck is the command that says whether a node is ready for enipool: its kernel and files, what else lives on it, and its cloud.
package nodecheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/install/check"
	"github.com/enipool/enipool/pkg/install/dropin"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	cloudcheck "github.com/enipool/enipool/plugins/enipoolctl/cloud"
	"github.com/spf13/cobra"
)

// askFlags are the flags of `node check` as they are typed.
type askFlags struct {
	root, config, confDir string
	noCloud               bool
	timeout               time.Duration
}

// Command returns the command node.
func Command() *cobra.Command {
	return cli.Group(&cobra.Command{Use: "node", Short: "A node that is to get enipool: check it"}, checkCommand())
}

func checkCommand() *cobra.Command {
	var f askFlags
	var as cli.Output
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say whether a node is ready for enipool: kernel and files, what else lives on it, cloud",
		Long: `Say whether a node is ready for enipool: what its kernel can do and which files and
services are in the way, as enipool-agent install does; which other programs live on
it; and, where the agent's configuration is there, what cloud check says. It runs on
the node as root and changes nothing. What must be fixed comes first, with how.

Exit codes: 0 nothing must be fixed, 1 something must, 2 it failed, or could not try
all: lines "not tried" say what is left and how to try it, as by running it as root.`,
		Example: `  enipoolctl node check --config agent.yaml
  enipoolctl node check --no-cloud -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := f.rows(cmd.Context())
			if err != nil {
				return err
			}
			all := struct {
				Rows []row `json:"rows"`
			}{rows}
			if err := as.Print(cmd, all, func() error { return printRows(cmd.OutOrStdout(), rows) }); err != nil {
				return err
			}
			return verdictOn(rows)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.root, "root", "/", "where the node's file system is mounted")
	flags.StringVar(&f.config, "config", "/etc/enipool/agent.yaml", "the file that the agent has, or will have; without one the built-in defaults are checked, and no cloud")
	flags.StringVar(&f.confDir, "conf-dir", install.ConfDir, "the node's folder of network configurations")
	flags.BoolVar(&f.noCloud, "no-cloud", false, "leave the cloud out")
	flags.DurationVar(&f.timeout, "timeout", time.Minute, "how long the cloud may take")
	cli.Offer(cmd, "timeout", "10s", "1m")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	_ = cmd.MarkFlagDirname("root")
	_ = cmd.MarkFlagDirname("conf-dir")
	as.AddFlag(cmd)
	return cmd
}

// rows checks all of it.
func (f askFlags) rows(ctx context.Context) ([]row, error) {
	root, err := filepath.Abs(f.root)
	if err != nil {
		return nil, fmt.Errorf("--root %s: %w", f.root, err)
	}
	if is, err := os.Stat(root); err != nil || !is.IsDir() { // nothing is in the way there, and all would seem well
		return nil, fmt.Errorf("--root %s: there is no such folder: it must be where the node's file system is mounted", f.root)
	}
	if !filepath.IsAbs(f.confDir) {
		return nil, fmt.Errorf("--conf-dir %s: must be an absolute path, as the node sees it", f.confDir)
	}
	conf, has, err := f.readConfig()
	if err != nil {
		return nil, err
	}
	tree := install.Tree{Root: root}
	rows := slices.Concat(ofLines("node", check.Node(tree, f.needs(conf))), ofLines("beside", check.Beside(tree)))
	switch {
	case f.noCloud:
	case !has:
		rows = append(rows, row{Of: "cloud", Verdict: notAsked, What: "there is no " + f.config, How: "write the file that the agent is to have, and name it with --config"})
	default:
		found, err := cloudcheck.Findings(ctx, f.config, f.timeout)
		if err != nil {
			return nil, err
		}
		rows = append(rows, ofFindings(found)...)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return slices.Index(verdicts, a.Verdict) - slices.Index(verdicts, b.Verdict) })
	return rows, nil
}

// readConfig returns the agent's configuration, and whether there is a file with it.
func (f askFlags) readConfig() (agentconf.Config, bool, error) {
	text, err := os.ReadFile(f.config)
	if os.IsNotExist(err) {
		return agentconf.Default(), false, nil
	}
	if errors.Is(err, fs.ErrPermission) {
		return agentconf.Config{}, false, fmt.Errorf("--config: %w; run it as root on the node", err)
	}
	if err != nil {
		return agentconf.Config{}, false, fmt.Errorf("--config: %w", err)
	}
	conf, err := agentconf.Parse(text)
	if err != nil {
		return agentconf.Config{}, false, fmt.Errorf("--config %s: %w", f.config, err)
	}
	return conf, true, nil
}

// needs are what an installation with its defaults asks of the node.
func (f askFlags) needs(conf agentconf.Config) check.Needs {
	files := dropin.Files(dropin.Node{OwnLinks: check.OwnLinks(), ConfDir: f.confDir, Agent: true, IPv6: slices.Contains(conf.Settings.Families, eni.IPv6)})
	return check.Needs{Settings: conf.Settings, AnyFirewall: conf.AnyFirewall, Network: config.PluginType, ConfDir: f.confDir, System: files}
}

// The verdicts of rows, the worst first.
const (
	mustFix  = "must fix"
	notTried = "not tried" // it should have been
	careful  = "careful"
	notAsked = "not checked"
	works    = "works"
)

var verdicts = []string{mustFix, notTried, careful, notAsked, works}

// row is one thing that was looked at.
type row struct {
	Verdict string `json:"verdict"`
	Of      string `json:"of"` // node, beside or cloud
	What    string `json:"what"`
	How     string `json:"how,omitempty"` // to mend it, where What does not say so
}

func ofLines(of string, lines []install.Line) (rows []row) {
	for _, l := range lines {
		verdict := works
		switch l.What {
		case install.MustFix:
			verdict = mustFix
		case install.NotTried:
			verdict = notTried
		case install.Warning:
			verdict = careful
		}
		rows = append(rows, row{Verdict: verdict, Of: of, What: l.Text})
	}
	return rows
}

func ofFindings(found []cloud.Finding) (rows []row) {
	words := map[cloud.Verdict]string{cloud.Works: works, cloud.Careful: careful, cloud.Broken: mustFix, cloud.Unknown: notAsked, cloud.Unasked: notTried}
	for _, f := range found {
		rows = append(rows, row{Verdict: words[f.Verdict], Of: "cloud", What: strings.TrimSuffix(f.What+": "+f.Detail, ": "), How: f.Fix})
	}
	return rows
}

// printRows prints the rows as lines: what they say is longer than a cell of a table.
func printRows(out io.Writer, rows []row) error {
	isBad := func(line string) bool { return strings.HasPrefix(line, mustFix) }
	return cli.Painted(out, isBad, func(out io.Writer) error {
		for _, r := range rows {
			fmt.Fprintf(out, "%-11s  %-6s  %s\n", r.Verdict, r.Of, r.What)
			if r.How != "" {
				fmt.Fprintf(out, "%-11s  %-6s  -> %s\n", "", "", r.How)
			}
		}
		_, err := fmt.Fprintf(out, "\n%s\n", sumUp(rows))
		return err
	})
}

// verdictOn is the exit code, nil for 0. What must be fixed must be so whatever was not tried.
func verdictOn(rows []row) error {
	switch {
	case count(rows, mustFix) > 0:
		return &cli.ExitError{Code: 1}
	case count(rows, notTried) > 0:
		return &cli.ExitError{Code: 2}
	}
	return nil
}

func sumUp(rows []row) string {
	must, left := count(rows, mustFix), count(rows, notTried)
	switch {
	case must > 0 && left > 0:
		return fmt.Sprintf("%d must be fixed before enipool is installed, and %d were not tried", must, left)
	case must > 0:
		return fmt.Sprintf("%d must be fixed before enipool is installed", must)
	case left > 0:
		return fmt.Sprintf("nothing that was tried must be fixed, and %d were not tried", left)
	}
	return "nothing must be fixed"
}

func count(rows []row, verdict string) (n int) {
	for _, r := range rows {
		if r.Verdict == verdict {
			n++
		}
	}
	return n
}
