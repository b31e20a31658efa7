package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// leaves returns the commands that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	var list []*cobra.Command
	for _, c := range cmd.Commands() {
		list = append(list, leaves(c)...)
	}
	return list
}

func TestEachCommandHasAnExampleAndCompletesItsFlags(t *testing.T) {
	list := leaves(rootCommand())
	if len(list) < 9 {
		t.Fatalf("only %d commands", len(list))
	}
	for _, cmd := range list {
		if cmd.Example == "" || cmd.Short == "" {
			t.Errorf("%s: no example or no short help", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, completes := cmd.GetFlagCompletionFunc(f.Name)
			_, file := f.Annotations[cobra.BashCompFilenameExt] // with none named any file is meant
			_, folder := f.Annotations[cobra.BashCompSubdirsInDir]
			if f.Value.Type() != "bool" && !completes && !file && !folder {
				t.Errorf("%s --%s: no completion", cmd.CommandPath(), f.Name)
			}
		})
	}
}

// A script that goes by exit codes finds in the help of a command when it is 1.
func TestEachCommandThatExitsWith1SaysWhen(t *testing.T) {
	may := []string{"cloud check", "import psts", "migrate check", "migrate node", "node check", "plan", "pool check", "pool show", "tune"}
	for _, cmd := range leaves(rootCommand()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "enipoolctl ")
		says := regexp.MustCompile(`(?i)exit codes?\b`).MatchString(cmd.Long)
		if says != slices.Contains(may, name) {
			t.Errorf("%s: its help speaks of exit codes: %t", name, says)
		}
	}
}
