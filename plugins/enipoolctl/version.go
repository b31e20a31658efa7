package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/plugins/enipoolctl/cli"
	"github.com/spf13/cobra"
)

// versions is what this program is made of and for.
type versions struct {
	Release  string `json:"release"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kinds    string `json:"kinds"` // the version of enipool's kinds that it reads
}

// versionCommand returns the command version.
func versionCommand() *cobra.Command {
	output, formats := "", []string{"table", "json", "yaml"}
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Tell this program's release, and the kinds that it reads in a cluster",
		Example: "  enipoolctl version\n  enipoolctl version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, output) {
				return fmt.Errorf("--output %s: must be one of %s", cli.Spelled(output), strings.Join(formats, ", "))
			}
			v := versions{release, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, crd.GroupVersion.String()}
			return cli.PrintAs(cmd.OutOrStdout(), output, v, func() error {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "enipoolctl %s (%s, %s), kinds of %s\n", v.Release, v.Go, v.Platform, v.Kinds)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", strings.Join(formats, ", "))
	cli.Offer(cmd, "output", formats...)
	return cmd
}
