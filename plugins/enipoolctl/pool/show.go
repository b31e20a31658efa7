package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/podrecord"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

func showCommand(cache *nodecache.Cache) *cobra.Command {
	var output string
	var asked pickFlags
	var file status.File
	var watch, bare bool
	formats := []string{"table", "wide", "json", "yaml"}
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what the agent does, ENIs with their counts, and addresses with their pods",
		Long: `Show what the agent does, ENIs with their counts, and addresses with their pods.

After the target stands in a word why it is what it is; the keys are those of
pool in agent.yaml:
  steady           as large as the pods need it
  up               it grows
  release          it shrinks
  hold-delay       more was needed less than delay ago
  hold-stable      the mean need of the last stable is higher
  hold-burst       pods come in a burst, or did within stable
  hold-boot        the agent could not read the demand for a whole stable yet
  hold-unreadable  the demand can't be read: nothing is released
  hold-interval    the last release was less than releaseInterval ago, or what is
                   left can't be released yet
  exhausted        the subnet has no more: the pods' addresses and exhaustedSpare
  clamped          a bound rules: minPool, what the node can hold, or what pods have

With --pod, --address, --state, --eni or --port only addresses are shown, those for
which all of them hold. The exit code is 1 if there are none.

On a terminal rows are cut to its width, but for -o wide; through a pipe they are whole.`,
		Example: "  enipoolctl pool show -o wide\n  enipoolctl pool show --pod shop/web-0\n  enipoolctl pool show --state free --no-headers\n  enipoolctl pool show --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, output) {
				return fmt.Errorf("--output %s: must be one of %s", output, strings.Join(formats, ", "))
			}
			only, err := asked.parse()
			if err != nil {
				return err
			}
			if file.Path == "" {
				file = status.Beside(cache.Path)
			} else if _, err := file.Read(); err != nil {
				return needRoot(err)
			}
			show := func(out io.Writer) error {
				err := showPool(cmd.Context(), cache, file, shape{only, output, bare}, out)
				if none := noneError(""); errors.As(err, &none) { // an answer, and no failure
					fmt.Fprintf(cmd.ErrOrStderr(), "enipoolctl: %v\n", err)
					return &cli.ExitError{Code: 1}
				}
				return err
			}
			if !watch {
				defer tellWaits(*cache, cmd.ErrOrStderr())()
				return cli.Painted(cmd.OutOrStdout(), isBad, show)
			}
			w := cacheWatch{cache: *cache, out: cmd.OutOrStdout(), screen: cli.ScreenOf(cmd.OutOrStdout()), errOut: cmd.ErrOrStderr(), show: show}
			return w.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide, json or yaml")
	cmd.Flags().StringVar(&file.Path, "status", "", "the agent's status file; default: agent.status.json beside the node cache")
	_ = cmd.MarkFlagFilename("status", "json")
	asked.addTo(cmd, cache)
	cmd.Flags().BoolVar(&bare, "no-headers", false, "tables without their heads, for scripts")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again after each change, until interrupted; wait for a node cache that does not exist yet")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// isBad tells which lines of what is shown are bad news.
func isBad(line string) bool {
	if strings.HasPrefix(line, "agent:") {
		return !strings.Contains(line, " ready, mode ") || strings.Contains(line, "not ready")
	}
	for _, bad := range []string{"cause:", "refused:", "lost:", "undone:", "node cache:", "damaged: ", "failed, is tried again", "host ports and limits of a pod are not known"} {
		if strings.HasPrefix(line, bad) {
			return true
		}
	}
	return false
}

// shown is what `pool show` shows, in the form of its JSON.
type shown struct {
	node.Report
	Waiting []waitingPod `json:"waiting,omitempty"`
	Agent   agentReport  `json:"agent"`
}

// shape is what is shown of the pool, and how.
type shape struct {
	only   picked
	output string
	bare   bool // no heads
}

// isWide tells whether all is shown of each address. Who asks for a port wants to see it.
func (s shape) isWide() bool { return s.output == "wide" || s.only.port != (portFilter{}) }

// showPool prints the pool. Where the cache can't be read it prints at least what the agent says.
func showPool(ctx context.Context, cache *nodecache.Cache, file status.File, as shape, out io.Writer) error {
	view := shown{Agent: readAgent(*cache, file, time.Now())}
	err := cache.View(ctx, func(state *ipam.State) error {
		view.Report = node.NewReport(state, nodecache.SinceBoot())
		return nil
	})
	if err == nil {
		view.Waiting, err = readWaiting(cache)
	}
	if err != nil {
		if view.Agent.Status == nil {
			return needRoot(err)
		}
		only := struct {
			Agent agentReport `json:"agent"`
		}{view.Agent}
		return needRoot(errors.Join(err, cli.PrintAs(out, as.output, only, func() error { return printAgent(out, view.Agent) })))
	}
	// Read after the cache: a pod that the cache has, has its record by now, unless it is starting.
	view.AddExtras(podrecord.Beside(cache.Path).AllUnlocked())
	if as.only != (picked{}) {
		if err := as.only.pickFrom(&view); err != nil {
			return err
		}
		return cli.PrintAs(out, as.output, view, func() error {
			return errors.Join(printAddresses(out, view.Report, as), printWaiting(out, view.Waiting, as.bare))
		})
	}
	return cli.PrintAs(out, as.output, view, func() error { return printAll(out, view, as) })
}

func printAll(out io.Writer, view shown, as shape) error {
	if err := printAgent(out, view.Agent); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printENIs(out, view.Report, as); err != nil {
		return err
	}
	if err := printWaiting(out, view.Waiting, as.bare); err != nil { // below hundreds of addresses nobody sees them
		return err
	}
	fmt.Fprintln(out)
	return printAddresses(out, view.Report, as)
}

func printENIs(out io.Writer, report node.Report, as shape) error {
	table := cli.NewTable(out, as.isWide())
	heads := cli.Heads(table, as.bare)
	fmt.Fprint(heads, "ENI\tDEVICE\tPRIMARY\tTOTAL\tUSED\tFREE\tCOOLING\tRELEASING\tHELD")
	keeps := slices.ContainsFunc(report.ENIs, func(e node.ReportENI) bool { return e.Reserved+e.Claimed > 0 })
	if keeps { // only on nodes with pods of topologies
		fmt.Fprint(heads, "\tRESERVED\tCLAIMED")
	}
	fmt.Fprintln(heads)
	for _, e := range report.ENIs {
		primary := make([]string, len(e.Primary))
		for i, p := range e.Primary {
			primary[i] = p.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d", e.ID, e.Device, strings.Join(primary, ","), e.Total, e.Used, e.Free, e.Cooling, e.Releasing, e.Held)
		if keeps {
			fmt.Fprintf(table, "\t%d\t%d", e.Reserved, e.Claimed)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func printAddresses(out io.Writer, report node.Report, as shape) error {
	wide := as.isWide()
	table := cli.NewTable(out, wide)
	heads := cli.Heads(table, as.bare)
	fmt.Fprint(heads, "ADDRESS\tENI\tSTATE\tFOR\tPOD")
	if wide {
		fmt.Fprint(heads, "\tNETWORK\tCONTAINER\tIFNAME\tKIND\tNETNS\tUID\tLIMITS\tHOSTPORTS")
	}
	fmt.Fprintln(heads)
	for _, address := range report.Addresses {
		pod := cli.OrDash(address.Pod)
		switch {
		case address.State == eni.Held.String():
			pod = ipam.HeldText(address.HeldBy)
		case address.Namespace != "":
			pod = address.Namespace + "/" + address.Pod
		case address.Pod == "" && address.Container != "":
			pod = address.Container
		}
		if address.State == eni.Reserved.String() && address.Pod == "" {
			pod = "nobody yet"
		}
		if address.Topology != "" {
			pod += ", topology " + address.Topology
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s", address.Address, address.ENI, address.State, time.Duration(address.Seconds)*time.Second, pod)
		if wide {
			fmt.Fprintf(table, "\t%s\t%s\t%s\t%s\t%s\t%s", cli.OrDash(address.Network), cli.OrDash(address.Container), cli.OrDash(address.IfName), cli.OrDash(address.Kind), cli.OrDash(address.Netns), cli.OrDash(address.UID))
			fmt.Fprintf(table, "\t%s\t%s", limitsCell(address), portsCell(address))
		}
		fmt.Fprintln(table)
	}
	err := table.Flush()
	for _, d := range report.Damaged {
		fmt.Fprintf(out, "damaged: %s\n", d)
	}
	for _, u := range report.UnreadRecords {
		fmt.Fprintf(out, "host ports and limits of a pod are not known: %s\n", u)
	}
	return err
}
