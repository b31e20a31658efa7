package main

import (
	"bytes"
	"testing"
)

func TestAStrayArgumentIsToldWithWhatTheCommandTakes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"now"}, `unknown command "now" for "enipool-agent"; see enipool-agent --help`},
		{[]string{"--once", "now"}, `unknown command "now" for "enipool-agent"; see enipool-agent --help`},
		{[]string{"instal"}, `unknown command "instal" for "enipool-agent"; did you mean enipool-agent install?`},
		{[]string{"install", "now"}, `enipool-agent install takes flags alone, and not "now"; see enipool-agent install --help`},
		{[]string{"install", "--dry-run", "now", "and", "then"}, `enipool-agent install takes flags alone, and not "now"; see enipool-agent install --help`},
		{[]string{"uninstall", "now"}, `enipool-agent uninstall takes flags alone, and not "now"; see enipool-agent uninstall --help`},
		{[]string{"completion", "bash", "now"}, `enipool-agent completion bash takes flags alone, and not "now"; see enipool-agent completion bash --help`},
	} {
		var stdout, stderr bytes.Buffer
		code := runCommand(t.Context(), tt.args, &stdout, &stderr)
		if got := stderr.String(); code != 2 || got != "enipool-agent: "+tt.want+"\n" || stdout.Len() > 0 {
			t.Errorf("%q: exit %d, %q and %q", tt.args, code, got, &stdout)
		}
	}
}
