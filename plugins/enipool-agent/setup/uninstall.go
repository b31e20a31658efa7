package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/bpf"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/lastgood"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/install/dropin"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kubeletplugin"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/plugins/enipool-agent/cli"
	"github.com/enipool/enipool/plugins/enipool-agent/cluster"
	"github.com/enipool/enipool/plugins/enipool-agent/configfile"
	"github.com/spf13/cobra"
)

// answerTime is how long an uninstallation waits for the API server.
const answerTime = 20 * time.Second

// uninstallFlags are what the command line of uninstall says.
type uninstallFlags struct {
	nodeFlags
	config string
}

func uninstallCommand(release string, stdout io.Writer) *cobra.Command {
	line := uninstallFlags{nodeFlags: nodeFlags{release: release}}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take enipool off the node",
		Long: `Take enipool off the node.

The network configuration goes first, so that no new pod starts with it, then what
else install and the agent put there. Plugins of others, and those that were changed since, stay.
Then enipool's rules, routes, packet filter and fast path are taken out of the kernel,
and the addresses off its ENIs. As long as pods of enipool live nothing of that is
touched: they run on, and so where the node cache that says who lives is missing or
damaged. Drain the node first, because the runtime can't stop them without a network
configuration, or run this again when they are gone. Settings (sysctls) stay
as they are, and are listed. What devices had in the kubelet's folder goes too, unless claims
of pods are still prepared there. In a cluster the agent's condition, resource and taint are
taken off the Node object in the end, with the rights that the agent has. End the
agent before: it would put all of it back. Repeated it finds nothing to do.

Exit codes: 0 done; 1 the files are gone, and the kernel or the Node object is as it
was, for a cause that is told; 2 it failed.`,
		Example: `  enipool-agent uninstall --root /host                        # in an init container
  enipool-agent uninstall --config /etc/enipool/agent.yaml    # where a kubeconfig is named there`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUninstall(cmd.Context(), line, stdout) },
	}
	line.addTo(cmd)
	cmd.Flags().StringVar(&line.config, "config", "", "the agent's configuration, which says where the API server is (default what a pod with a service account finds)")
	return cmd
}

func runUninstall(ctx context.Context, line uninstallFlags, stdout io.Writer) error {
	options, err := line.installOptions()
	if err != nil {
		return err
	}
	conf, err := line.readConf()
	if err != nil {
		return err
	}
	options.System, options.Own = dropin.Files(dropin.Node{ConfDir: line.confDir}), lastgood.Leftovers(conf.State)
	unlock, err := options.Tree.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	said := 0
	say := func(l install.Line) {
		said++
		fmt.Fprintln(stdout, l)
	}
	if line.config == "" {
		// Before the files go: one of them names it.
		conf.Cache = cmp.Or(options.CacheInUse(), conf.Cache)
	}
	files := errors.Join(install.Uninstall(ctx, options, say), clearKubelet(options.Tree, conf.Kubernetes.KubeletFolder, say))
	left := errors.Join(clearKernel(ctx, options.Tree, conf.Cache, say), withdrawNode(ctx, conf, say))
	switch {
	case files != nil && left != nil:
		return fmt.Errorf("%w\n%w", files, left)
	case left != nil:
		return &cli.NodeError{Err: left}
	case files == nil && said == 0:
		fmt.Fprintln(stdout, install.Linef(install.OK, "nothing of enipool is installed"))
	}
	return files
}

// readConf returns what is known of the node and its cluster.
func (f uninstallFlags) readConf() (agentconf.Config, error) {
	if f.config != "" {
		return configfile.ReadConfig(f.config)
	}
	conf := agentconf.Default()
	var err error
	if conf.Node = os.Getenv(cluster.NodeName); conf.Node == "" {
		conf.Node, err = os.Hostname()
	}
	return conf, err
}

// clearKubelet takes off what the plugin of devices has put into the kubelet's folder.
func clearKubelet(t install.Tree, folder string, say func(install.Line)) error {
	at, err := t.Target(folder)
	if err != nil {
		return err
	}
	removed, err := kubeletplugin.Remove(at, kube.Driver)
	for _, path := range removed {
		say(install.Linef(install.Removed, "%s", filepath.Join(folder, path)))
	}
	if used := new(kubeletplugin.UsedError); errors.As(err, &used) {
		say(install.Linef(install.Kept, "%s: %v", filepath.Join(folder, used.Path), used))
		return nil
	}
	return err
}

// clearKernel takes what is enipool's out of the kernel, in the network namespace of this
// process, if no pods need it.
func clearKernel(ctx context.Context, t install.Tree, cache string, say func(install.Line)) error {
	at, err := t.Target(cache)
	if err != nil {
		return err
	}
	n := node.Node{Cache: nodecache.Cache{Path: at}, Now: nodecache.SinceBoot}
	removed, stays, err := n.Remove(ctx, bpf.Folder(cache))
	for _, line := range removed {
		say(install.Linef(install.Removed, "%s", line))
	}
	if len(stays) > 0 {
		say(install.Linef(install.Kept, "settings, for what they were before is not known; a reboot resets them: %s", strings.Join(stays, " ")))
	}
	if living := new(node.LivingError); errors.As(err, &living) {
		return fmt.Errorf("take enipool out of the kernel: %w\nThe runtime can't end these pods without plugin and network configuration: `enipool-agent install --conflist-now` puts both back for the drain", err)
	}
	if err != nil {
		return fmt.Errorf("take enipool out of the kernel: %w", err)
	}
	return nil
}

// withdrawNode takes off the Node object what agents wrote there. Without a cluster there
// is nothing to do.
func withdrawNode(ctx context.Context, conf agentconf.Config, say func(install.Line)) error {
	if !cluster.Reachable(conf.Kubernetes) {
		return nil
	}
	// As the agent finds its name: else it would be the Node of another.
	name := cmp.Or(os.Getenv(cluster.NodeName), conf.Node)
	config, err := kube.Load(conf.Kubernetes.Kubeconfig)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		var removed []string
		removed, err = kube.Withdraw(ctx, kube.Options{Node: name, Config: config})
		for _, what := range removed {
			say(install.Linef(install.Removed, "%s of the Node %s", what, name))
		}
	}
	if err != nil {
		return fmt.Errorf("%w\nWhat the Node %s still shows of enipool goes when this is run again, or by hand:\n  %s",
			err, name, strings.Join(kube.ByHand(name), "\n  "))
	}
	return nil
}
