// Package setup holds the commands that put enipool on a node and take it off.
package setup

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/keys"
	"github.com/enipool/enipool/pkg/config/renamed"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/install/check"
	"github.com/enipool/enipool/pkg/install/dropin"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
	"github.com/enipool/enipool/plugins/enipool-agent/configfile"
	"github.com/spf13/cobra"
)

// Commands returns the commands install and uninstall; release is the program's.
func Commands(release string, stdout io.Writer) []*cobra.Command {
	return []*cobra.Command{installCommand(release, stdout), uninstallCommand(release, stdout)}
}

// nodeFlags say where the node's folders are.
type nodeFlags struct {
	root, binDir, confDir string
	release               string // this program's own
}

func (f *nodeFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.root, "root", "/", "where the node's file system is mounted")
	cmd.Flags().StringVar(&f.binDir, "bin-dir", install.BinDir, "the node's folder of CNI plugins")
	cmd.Flags().StringVar(&f.confDir, "conf-dir", install.ConfDir, "the node's folder of network configurations")
}

// installOptions refuses folders that would mean another place on each call.
func (f nodeFlags) installOptions() (options install.Options, err error) {
	for flag, path := range map[string]string{"bin-dir": f.binDir, "conf-dir": f.confDir} {
		if !filepath.IsAbs(path) {
			return options, fmt.Errorf("--%s %s: must be an absolute path, as the node sees it", flag, path)
		}
	}
	root, err := filepath.Abs(f.root)
	if err != nil {
		return options, fmt.Errorf("--root %s: %w", f.root, err)
	}
	if is, err := os.Stat(root); err != nil || !is.IsDir() {
		return options, fmt.Errorf("--root %s: there is no such folder: it must be where the node's file system is mounted", f.root)
	}
	return install.Options{Tree: install.Tree{Root: root}, BinDir: f.binDir, ConfDir: f.confDir, Release: f.release}, nil
}

// installFlags are what the command line of install says.
type installFlags struct {
	nodeFlags
	from, conflist, config string
	plugins, eniLinks      []string
	now, dryRun            bool
	force, noSystemFiles   bool
}

func installCommand(release string, stdout io.Writer) *cobra.Command {
	line := installFlags{nodeFlags: nodeFlags{release: release}}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Put enipool on the node, or a newer or older release of it",
		Long: `Put enipool on the node, or a newer or older release of it.

It checks the node first, and changes nothing if something must be fixed. What it has
no rights to try it says, and goes on. Then it
installs the plugins and the files that keep services of the system off our
links. The network configuration it only stages: the agent publishes it when it
can serve, so that the node does not turn Ready before. Running pods and running
programs are not disturbed; cut off at any moment it is completed by the next run.

Exit codes: 0 done, 1 a person must fix something first, 2 it failed.`,
		Example: `  enipool-agent install --dry-run
  enipool-agent install --root /host --config /etc/enipool/agent.yaml   # in an init container`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("plugins") {
				line.plugins = nil
			}
			return runInstall(cmd.Context(), line, stdout)
		},
	}
	line.addTo(cmd)
	cmd.Flags().StringVar(&line.from, "from", "", "the folder that the plugins come in (default this program's own, or --bin-dir where enipool is there and not beside this program)")
	cmd.Flags().StringSliceVar(&line.plugins, "plugins", nil, "plugins to install beside enipool (default those that the network configuration calls, and loopback, as far as they are in --from)")
	cmd.Flags().StringVar(&line.conflist, "conflist", "", "the network configuration (default a built-in one, conf/10-enipool.conflist)")
	cmd.Flags().BoolVar(&line.now, "conflist-now", false, "publish the network configuration at once: for nodes without an agent")
	cmd.Flags().StringVar(&line.config, "config", "", "the agent's configuration, to check what it needs (default what it needs without one)")
	cmd.Flags().StringSliceVar(&line.eniLinks, "eni-links", nil, "patterns of the names of ENIs' links, but for the node's own, like eth[1-9]*")
	cmd.Flags().BoolVar(&line.noSystemFiles, "no-system-files", false, "leave NetworkManager, systemd and sysctl.d as they are")
	cmd.Flags().BoolVar(&line.dryRun, "dry-run", false, "check the node and print what would be done; change nothing")
	renamed.Flag(cmd, "check-only", "dry-run")
	cmd.Flags().BoolVar(&line.force, "force", false, "go on though something must be fixed, also beside another main plugin")
	return cmd
}

func runInstall(ctx context.Context, line installFlags, stdout io.Writer) error {
	options, needs, conf, err := line.readFlags()
	if err != nil {
		return err
	}
	found := slices.Concat(check.Node(options.Tree, needs), fastPathLines(conf.Config, kernelRelease()), conf.warningLines())
	plan, err := install.NewPlan(ctx, options)
	if err != nil {
		return err
	}
	refused := mustFix(found, plan.Lines) > 0 && (line.dryRun || !line.force)
	if !line.dryRun && !refused {
		// Not before: the lock makes a folder. Another run may have been at work until now.
		unlock, err := options.Tree.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		if plan, err = install.NewPlan(ctx, options); err != nil {
			return err
		}
		refused = mustFix(found, plan.Lines) > 0 && !line.force
	}
	say := func(l install.Line) { fmt.Fprintln(stdout, l) }
	for _, l := range slices.Concat(found, plan.Lines) {
		say(l)
	}
	switch {
	case refused:
		return &cli.NodeError{Err: fmt.Errorf("%d of the above must be fixed first; nothing was changed", mustFix(found, plan.Lines))}
	case line.dryRun:
		for _, l := range plan.Preview() {
			say(l)
		}
		return nil
	}
	return plan.Apply(ctx, say)
}

// nodeConfig is the agent's configuration on the node.
type nodeConfig struct {
	agentconf.Config
	wrong error // of the file; the agent, and what is installed for it, go on with what was in force last
	kept  string
}

// readNode reads the configuration as the agent does after it: an init container that fails
// would keep the agent from starting with what was in force last.
func (f installFlags) readNode(t install.Tree) (nodeConfig, error) {
	found, wrong := configfile.Read(f.config)
	if wrong == nil || f.dryRun { // somebody waits for the answer
		return nodeConfig{Config: found.Conf}, wrong
	}
	good, kept, err := configfile.ReadLastGood(f.config, found.Text, func(path string) string {
		at, err := t.Target(path)
		if err != nil {
			return ""
		}
		return at
	})
	if err != nil {
		return nodeConfig{}, wrong
	}
	return nodeConfig{good.Conf, wrong, kept.Path}, nil
}

// warningLines warn of a file that is wrong.
func (c nodeConfig) warningLines() []install.Line {
	if c.wrong == nil {
		return nil
	}
	return []install.Line{install.Linef(install.Warning, "the agent will start with the configuration that was in force last, %s: %s", c.kept, strings.Join(strings.Fields(keys.Brief(c.wrong)), " "))}
}

// mustFix counts the lines that a person has to do something about first.
func mustFix(lists ...[]install.Line) (n int) {
	for _, l := range slices.Concat(lists...) {
		if l.What == install.MustFix {
			n++
		}
	}
	return n
}

// readFlags turns the flags into what to install, and what to check.
func (f installFlags) readFlags() (options install.Options, needs check.Needs, conf nodeConfig, err error) {
	if options, err = f.installOptions(); err != nil {
		return options, needs, conf, err
	}
	conf.Config = agentconf.Default()
	if f.config != "" {
		if conf, err = f.readNode(options.Tree); err != nil {
			return options, needs, conf, err
		}
		options.CachePath = conf.Cache
	}
	own := check.OwnLinks()
	if wrong := check.WrongLinks(f.eniLinks, own); wrong != "" {
		return options, needs, conf, fmt.Errorf("--eni-links %s", wrong)
	}
	options.From, options.Plugins, options.Now = f.from, f.plugins, f.now
	if f.from == "" {
		self, err := os.Executable()
		if err != nil {
			return options, needs, conf, fmt.Errorf("find this program's folder: %w; --from names it", err)
		}
		options.From = pluginsFolder(filepath.Dir(self), filepath.Join(options.Tree.Root, f.binDir))
	}
	if options.Conflist, err = readConflist(f.conflist); err != nil {
		return options, needs, conf, err
	}
	// --conflist-now is for nodes without an agent.
	files := dropin.Files(dropin.Node{ENILinks: f.eniLinks, OwnLinks: own, ConfDir: f.confDir, Agent: !f.now,
		IPv6: slices.Contains(conf.Settings.Families, eni.IPv6)})
	if !f.noSystemFiles {
		options.System = files
	}
	needs = check.Needs{Settings: conf.Settings, AnyFirewall: conf.AnyFirewall, Network: options.Conflist.Name, Delegated: len(options.Conflist.Plugins) > 0 && options.Conflist.Plugins[0] != config.PluginType, ConfDir: f.confDir,
		ENILinks: f.eniLinks, System: files, Skipped: f.noSystemFiles}
	return options, needs, conf, nil
}

// pluginsFolder is the folder that the plugins come in: this program's own, or that of the node
// where somebody put the plugin there by hand and the agent elsewhere, as the README does.
func pluginsFolder(own, bin string) string {
	has := func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, config.PluginType))
		return err == nil
	}
	if !has(own) && has(bin) {
		return bin
	}
	return own
}

func readConflist(path string) (install.Conflist, error) {
	text := install.DefaultConflist()
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return install.Conflist{}, fmt.Errorf("%w; --conflist names the network configuration", err)
		}
	}
	c, err := install.ParseConflist(text)
	if err != nil && path != "" {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}
