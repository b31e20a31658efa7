package main

import (
	"bytes"
	"log/slog"
	"testing"
)

func TestAStrayArgumentIsToldWithWhatTheProgramTakes(t *testing.T) {
	for arg, want := range map[string]string{
		"now":           `enipool-operator takes flags alone, and not "now"; see enipool-operator --help`,
		"help":          `enipool-operator takes flags alone, and not "help"; see enipool-operator --help`,
		"completion":    `enipool-operator takes flags alone, and not "completion"; see enipool-operator --help`,
		"operator.yaml": `enipool-operator takes flags alone, and not "operator.yaml"; did you mean enipool-operator --config operator.yaml?`,
	} {
		var stdout, stderr bytes.Buffer
		code := runCommand(t.Context(), []string{arg}, &stdout, &stderr, func(*slog.Logger) { t.Error("it ran") })
		if got := stderr.String(); code != 2 || got != "enipool-operator: "+want+"\n" || stdout.Len() > 0 {
			t.Errorf("%s: exit %d, %q and %q", arg, code, got, &stdout)
		}
	}
}
