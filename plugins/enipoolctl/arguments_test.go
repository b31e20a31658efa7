package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/enipool/enipool/plugins/enipoolctl/cli"
)

// No command takes a word for nothing, or says of it that it is no command.
func TestAStrayArgumentIsToldWithWhatTheCommandTakes(t *testing.T) {
	args := map[string][]string{"cluster why": {"a", "stray"}, "migrate node": {"a", "stray"}, "vpc exec": {"a"}}
	want := map[string]string{"cluster why": "name one node: enipoolctl cluster why NODE", "migrate node": "name one node: enipoolctl migrate node NODE",
		"vpc exec": "name a node and a program to run there: enipoolctl vpc exec NODE -- PROGRAM"}
	for _, cmd := range leaves(rootCommand()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "enipoolctl ")
		if name == "migrate check" { // it takes any number of nodes
			continue
		}
		given := args[name]
		if given == nil {
			given, want[name] = []string{"stray", "more"}, "enipoolctl "+name+` takes flags alone, and not "stray"; see enipoolctl `+name+" --help"
		}
		var stdout, stderr bytes.Buffer
		code := cli.Run(t.Context(), rootCommand(), slices.Concat(strings.Fields(name), given), &stdout, &stderr)
		if got := stderr.String(); code != 2 || got != "enipoolctl: "+want[name]+"\n" || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %q and %q", name, code, got, &stdout)
		}
	}
}
