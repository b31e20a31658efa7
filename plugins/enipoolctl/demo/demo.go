// Package demo is the command that shows enipool on a simulated VPC.
package demo

import (
	"fmt"
	"io"
	"net"
	"os"

	"github.com/enipool/enipool/pkg/config/renamed"
	"github.com/enipool/enipool/pkg/demo"
	"github.com/enipool/enipool/pkg/isolate/sandbox"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// inSandbox marks, in the environment, the demo's own process.
const inSandbox = "ENIPOOL_DEMO"

// Command returns the command demo.
func Command() *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use:   "demo --from DIR",
		Short: "Show two nodes, their agents and eighty pods on a simulated VPC",
		Long: `Show two nodes, their agents and eighty pods on a simulated VPC, with real
kernel networking: a burst of pods, by the scaling equation and one batch at a
time, who reaches whom, an agent that is killed, and pools that shrink again.

It runs in network and mount namespaces of its own: nothing of this machine is
changed, and an interrupt leaves nothing behind. It needs root, or a kernel that
lets everybody have user namespaces.`,
		Example: "  make demo\n  make demo KEEP=1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if os.Getenv(inSandbox) == "" {
				pages, err := listen(o.Keep)
				if err != nil {
					return err
				}
				code, err := sandbox.AgainWith(pages, inSandbox+"=1")
				if err != nil {
					return fmt.Errorf("the demo needs network namespaces of its own: %w", err)
				}
				return exitWith(code)
			}
			if err := sandbox.Enter(); err != nil {
				return err
			}
			pages, err := passedOn(o.Keep)
			if err != nil {
				return err
			}
			o.Out, o.Pages = os.Stdout, pages
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringArrayVar(&o.From, "from", nil, "folder with enipool and enipool-agent; may be repeated")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave it up until interrupted, with a page for browsers, and say how to look around")
	_ = cmd.MarkFlagRequired("from") // the flag exists
	_ = cmd.MarkFlagDirname("from")
	renamed.Flag(cmd, "plugins", "from")
	if os.Getenv(inSandbox) != "" {
		cmd.SetErr(io.Discard) // the caller was told already that a flag has another name
	}
	return cmd
}

// nodes is how many nodes the demonstration has.
const nodes = 2

// listen listens on the machine's own loopback, at free ports, for the pages of nodes that are kept up.
func listen(keep bool) (files []*os.File, err error) {
	for range nodes {
		if !keep {
			return nil, nil
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen for browsers: %w", err)
		}
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			return nil, fmt.Errorf("listen for browsers: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

// passedOn returns what listen has made, in the sandbox.
func passedOn(keep bool) (pages []net.Listener, err error) {
	for i := range nodes {
		if !keep {
			return nil, nil
		}
		file := os.NewFile(uintptr(sandbox.FirstFile+i), "page")
		l, err := net.FileListener(file)
		if err != nil {
			return nil, fmt.Errorf("listen for browsers: %w", err)
		}
		pages = append(pages, l)
		file.Close() // the listener has its own
	}
	return pages, nil
}

func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &cli.ExitError{Code: code}
}
