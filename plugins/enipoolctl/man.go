package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand returns the command man.
func manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man --dir DIR",
		Short: "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands into a folder, which is made if it does
not exist.`,
		Example: "  enipoolctl man --dir /usr/local/share/man/man1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("make the folder of manual pages: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it names the day, and the same release is to give the same pages
			header := doc.GenManHeader{Section: "1", Source: "enipool " + release, Manual: "enipool", Date: releasedAt()}
			if err := doc.GenManTree(root, &header, dir); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote manual pages to %s; `man -l %s/enipoolctl.1` shows the first one\n", dir, dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder")
	_ = cmd.MarkFlagRequired("dir")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// releasedAt is when the commit was made that this program is of; the epoch where that is not known.
func releasedAt() *time.Time {
	at := time.Unix(0, 0).UTC()
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return &at
	}
	for _, s := range info.Settings {
		if is, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
			at = is
		}
	}
	return &at
}
