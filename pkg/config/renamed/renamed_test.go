package renamed

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// program has a command at its new place, its old one, and a flag that was renamed twice.
func program(stdout, stderr *strings.Builder) *cobra.Command {
	size := func(use string) *cobra.Command {
		var form string
		cmd := &cobra.Command{Use: use, Args: cobra.NoArgs, Run: func(cmd *cobra.Command, _ []string) { cmd.Println("form", form) }}
		cmd.Flags().StringVar(&form, "form", "safe", "")
		Flag(cmd, "shape", "form")
		Flag(cmd, "kind", "form")
		return cmd
	}
	root := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(size("size"), Command(size("scale"), "tool size"))
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root
}

func TestAnOldSpellingStillWorksAndSaysTheNewOne(t *testing.T) {
	for _, tt := range []struct{ args, out, said string }{
		{"size --form document", "form document\n", ""},
		{"size --shape document", "form document\n", "tool: --shape is an old name; use --form\n"},
		{"size --kind=document --kind document", "form document\n", "tool: --kind is an old name; use --form\n"},
		{"scale", "form safe\n", "tool: tool scale is an old name; use tool size\n"},
		{"scale --shape document", "form document\n", "tool: --shape is an old name; use --form\ntool: tool scale is an old name; use tool size\n"},
	} {
		var out, said strings.Builder
		cmd := program(&out, &said)
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.Execute(); err != nil || out.String() != tt.out || said.String() != tt.said {
			t.Errorf("%s: %v, stdout %q, stderr %q, want %q and %q", tt.args, err, &out, &said, tt.out, tt.said)
		}
	}
}

func TestHelpNamesOnlyTheNewSpelling(t *testing.T) {
	for _, args := range []string{"--help", "size --help"} {
		var out, said strings.Builder
		cmd := program(&out, &said)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil || said.Len() > 0 || strings.Contains(out.String(), "scale") || strings.Contains(out.String(), "shape") {
			t.Errorf("%s: %v, %q, %q", args, err, &out, &said)
		}
	}
}
