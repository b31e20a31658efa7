package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/node"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func showCommand(cache *nodecache.Cache) *cobra.Command {
	var output string
	var watch bool
	formats := []string{"table", "wide", "json", "yaml"}
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show ENIs with their counts, and addresses with their pods",
		Example: "  enipoolctl pool show -o wide\n  enipoolctl pool show --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, output) {
				return fmt.Errorf("--output %s: must be one of %s", output, strings.Join(formats, ", "))
			}
			show := func() error { return show(cmd.Context(), cache, output, cmd.OutOrStdout()) }
			if !watch {
				return show()
			}
			return watchCache(cmd.Context(), cache, cmd.OutOrStdout(), show)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, wide, json or yaml")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again after each change, until interrupted")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func show(ctx context.Context, cache *nodecache.Cache, output string, w io.Writer) error {
	var r node.Report
	err := cache.View(ctx, func(s *ipam.State) error {
		r = node.NewReport(s, nodecache.SinceBoot())
		return nil
	})
	if err != nil {
		return needRoot(err)
	}
	switch output {
	case "json":
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return err
	case "yaml":
		return yaml.NewEncoder(w, yaml.UseJSONMarshaler()).Encode(r)
	}
	return printTable(w, r, output == "wide")
}

func printTable(w io.Writer, r node.Report, wide bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ENI\tDEVICE\tPRIMARY\tTOTAL\tUSED\tFREE\tCOOLING\tRELEASING")
	for _, e := range r.ENIs {
		primary := make([]string, len(e.Primary))
		for i, p := range e.Primary {
			primary[i] = p.String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", e.ID, e.Device, strings.Join(primary, ","), e.Total, e.Used, e.Free, e.Cooling, e.Releasing)
	}
	fmt.Fprintln(t)
	fmt.Fprint(t, "ADDRESS\tENI\tSTATE\tFOR\tPOD")
	if wide {
		fmt.Fprint(t, "\tNETWORK\tCONTAINER\tIFNAME\tKIND\tNETNS\tUID")
	}
	fmt.Fprintln(t)
	for _, a := range r.Addresses {
		pod := orDash(a.Pod)
		switch {
		case a.Namespace != "":
			pod = a.Namespace + "/" + a.Pod
		case a.Pod == "" && a.Container != "":
			pod = a.Container
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s", a.Address, a.ENI, a.State, time.Duration(a.Seconds)*time.Second, pod)
		if wide {
			fmt.Fprintf(t, "\t%s\t%s\t%s\t%s\t%s\t%s", orDash(a.Network), orDash(a.Container), orDash(a.IfName), orDash(a.Kind), orDash(a.Netns), orDash(a.UID))
		}
		fmt.Fprintln(t)
	}
	for _, d := range r.Damaged {
		fmt.Fprintf(t, "damaged: %s\n", d)
	}
	return t.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// watchCache calls show now, after each change of the cache and every second for
// the times in it. On a terminal each picture replaces the one before.
func watchCache(ctx context.Context, cache *nodecache.Cache, w io.Writer, show func() error) error {
	watch, err := cache.Watch()
	if err != nil {
		return err
	}
	defer watch.Close()
	f, _ := w.(*os.File)
	screen := f != nil && term.IsTerminal(int(f.Fd()))
	tick := make(<-chan time.Time)
	if screen {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		if screen {
			fmt.Fprint(w, "\x1b[H\x1b[2J")
		}
		if err := show(); err != nil {
			return err
		}
		select {
		case <-watch.C:
		case <-tick:
		case <-ctx.Done():
			return nil
		}
	}
}
