// Package pool has the commands of a node's pool of addresses: those that work on the node, and
// size, which works out how large its pool should be.
package pool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config/inventory"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Command returns the command pool.
func Command() *cobra.Command {
	pool := &cobra.Command{
		Use:   "pool",
		Short: "The node's pool: load, show, check, reclaim; and the size it should have",
		Long: `The node's pool: load, show, check, reclaim; and the size it should have.

size only computes, anywhere and for everybody. The others work on the node whose
network namespace they run in and on the node cache that the plugin reads; they
need root.`,
	}
	cache := &nodecache.Cache{}
	pool.PersistentFlags().StringVar(&cache.Path, "cache", cmp.Or(os.Getenv("ENIPOOL_CACHE"), nodecache.DefaultPath), "the node cache; the environment's ENIPOOL_CACHE is the default where it is set")
	return cli.Group(pool, loadCommand(cache), showCommand(cache), checkCommand(cache), reclaimCommand(cache), sizeCommand("size"))
}

func loadCommand(cache *nodecache.Cache) *cobra.Command {
	var file string
	var as cli.Output
	cmd := &cobra.Command{
		Use:   "load -f inventory.yaml",
		Short: "Write the node cache from an inventory and put the node's kernel state in place",
		Long: `Write the node cache from an inventory and put the node's kernel state in place.

Again with the same inventory it changes nothing, or puts back what others
removed. With a changed one it adds what is new and removes what no pod uses; if
a pod uses what should go, nothing is changed and the pods are named. It refuses
where an agent keeps the node: that does all of this by itself.`,
		Example: "  enipoolctl pool load -f /etc/enipool/inventory.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("pool load needs an inventory: name it with -f inventory.yaml, or - for standard input; conf/inventory.yaml explains it")
			}
			defer tellWaits(*cache, cmd.ErrOrStderr())()
			text, err := readFile(file, cmd.InOrStdin())
			if err != nil {
				return err
			}
			inv, err := inventory.Parse(text)
			if err != nil {
				return fmt.Errorf("%s:\n%w", file, err)
			}
			n := node.Node{Cache: *cache, Now: nodecache.SinceBoot}
			var changed []string
			err = cache.WithoutAgent(func() (err error) {
				if changed, err = n.Load(cmd.Context(), inv); err == nil {
					// An agent that kept the node does so no more.
					_ = os.Remove(status.Beside(cache.Path).Path)
				}
				return err
			})
			if err != nil {
				printTried(cmd.ErrOrStderr(), changed)
				return needRoot(err)
			}
			all := struct {
				Changed []string `json:"changed"`
			}{append([]string{}, changed...)}
			return as.Print(cmd, all, func() error {
				printLines(cmd.OutOrStdout(), cmp.Or(strings.Join(changed, "\n"), "nothing to change"))
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the inventory, - for standard input; conf/inventory.yaml explains it")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml")
	as.AddFlag(cmd)
	return cmd
}

// printTried prints the lines of a load that failed. It is not known which of them were done.
func printTried(out io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(out, "tried:", l)
	}
	if len(lines) > 0 {
		fmt.Fprintln(out, "It stopped: of what was tried some is in place and some is not. Once the error is mended, load again: that puts in place what is missing.")
	}
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}

func printLines(out io.Writer, lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(out, l)
	}
}

// needRoot adds to an error for want of rights what to do about it.
func needRoot(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w (run it as root on the node)", err)
	}
	return err
}

func checkCommand(cache *nodecache.Cache) *cobra.Command {
	var as cli.Output
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare cache, kernel and live namespaces; exit 1 and a line for each mismatch, 2 if that fails",
		Long: `Compare cache, kernel and live namespaces, and change nothing. Each mismatch is
a line with what to do about it, or with who puts it right. Repairs of the agent
that something on the node undoes again and again are a mismatch, also in a moment
when all is in place. That the agent does not run, is stopped or refuses its
configuration is a note: it changes no exit code.

Pods may come and go meanwhile: what differs is looked at again half a second
later, and told if it differs still.

In the agent's container the pods' namespaces can't be entered: what is inside them
is left out there, which a line says, and the exit code is by all else.

Exit codes: 0 all agree, 1 something differs, 2 it failed.`,
		Example: "  enipoolctl pool check",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer tellWaits(*cache, cmd.ErrOrStderr())()
			n := node.Node{Cache: *cache, Now: nodecache.SinceBoot, Keeper: keeper(*cache, time.Now())}
			wrong, err := n.Check(cmd.Context())
			if !n.Uninstalled() {
				wrong = append(undoneRepairs(*cache, time.Now()), wrong...)
			}
			found := checked{Whole: err == nil, Wrong: append([]string{}, wrong...)}
			var left *node.LeftOutError
			if errors.As(err, &left) {
				found.LeftOut, err = left.Error(), nil
			}
			if !n.Uninstalled() {
				found.Note = cmp.Or(agentAway(*cache), refusedFile(*cache))
			}
			if err := errors.Join(needRoot(err), as.Print(cmd, found, func() error { return found.printTo(cmd.OutOrStdout()) })); err != nil {
				return err
			}
			if len(wrong) > 0 {
				return &cli.ExitError{Code: 1}
			}
			return nil
		},
	}
	as.AddFlag(cmd)
	return cmd
}

// checked is what a check has found, in the form of its JSON.
type checked struct {
	Whole bool     `json:"whole"` // all could be compared
	Wrong []string `json:"wrong"`
	Note  string   `json:"note,omitempty"` // of the agent

	LeftOut string `json:"leftOut,omitempty"` // what this process may not look at, and who may
}

func (c checked) printTo(out io.Writer) error {
	var lines []string
	if c.Note != "" {
		lines = append(lines, "note: "+c.Note)
	}
	if c.LeftOut != "" {
		lines = append(lines, "left out: "+c.LeftOut)
	}
	switch lines = append(lines, c.Wrong...); {
	case len(c.Wrong) > 0:
	case c.Whole:
		lines = append(lines, "cache, kernel and namespaces agree")
	case c.LeftOut != "":
		lines = append(lines, "cache and kernel agree")
	}
	isBad := func(line string) bool { return slices.Contains(c.Wrong, line) }
	return cli.Painted(out, isBad, func(out io.Writer) error { printLines(out, lines...); return nil })
}

// freedLine says which address was freed, and what proves that its pod is gone. A rebuilt cache has no
// names of namespaces: its pods were found by their links.
func freedLine(a eni.Address) string {
	o, dev := a.Owner, netconf.HostDevice(a.Owner.Key)
	line := fmt.Sprintf("freed %s of %s: ", a.Addr, o.PodName())
	switch {
	case o.Netns == "":
		return line + fmt.Sprintf("its link %s is gone, and the node cache did not name its namespace", dev)
	case o.Kind != eni.Veth:
		return line + fmt.Sprintf("its namespace is not at %s any more", o.Netns)
	}
	return line + fmt.Sprintf("its namespace is not seen at %s any more, and its link %s is gone", o.Netns, dev)
}

// reclaimed is what became of addresses whose pods are gone, in the form of its JSON.
type reclaimed struct {
	Freed    []string `json:"freed"`
	NotFreed []string `json:"notFreed"`
}

func (r reclaimed) printTo(out io.Writer) error {
	if printLines(out, r.Freed...); len(r.Freed) == 0 {
		printLines(out, "nothing to free")
	}
	for _, l := range r.NotFreed {
		printLines(out, "not freed: "+l)
	}
	return nil
}

func reclaimCommand(cache *nodecache.Cache) *cobra.Command {
	var as cli.Output
	cmd := &cobra.Command{
		Use:   "reclaim",
		Short: "Free the addresses whose pods are provably gone",
		Long: `Free the addresses whose pods are provably gone: the network namespace that was
recorded at their start no longer exists, and neither does their link. Of pods
that were found in the kernel, after the node cache was lost, the link alone
tells. Run it where the namespaces' folder (/run/netns or /var/run/netns) can be
seen.`,
		Example: "  enipoolctl pool reclaim",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer tellWaits(*cache, cmd.ErrOrStderr())()
			p := cni.Plugin{Cache: *cache, Now: nodecache.SinceBoot, Log: slog.New(slog.DiscardHandler)}
			freed, err := p.Reclaim(cmd.Context(), func(eni.Owner) bool { return true })
			is := reclaimed{Freed: []string{}, NotFreed: []string{}}
			for _, a := range freed {
				is.Freed = append(is.Freed, freedLine(a))
			}
			if err != nil {
				printLines(cmd.ErrOrStderr(), is.Freed...)
				return needRoot(err)
			}
			lines, err := node.Node{Cache: *cache, Now: nodecache.SinceBoot}.Lingering(cmd.Context())
			is.NotFreed = append(is.NotFreed, lines...)
			return errors.Join(as.Print(cmd, is, func() error { return is.printTo(cmd.OutOrStdout()) }), needRoot(err))
		},
	}
	as.AddFlag(cmd)
	return cmd
}
