package test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// parseUnit reads a unit as systemd does: keys in sections. What it starts is what the page installs, with a command of the page.
func parseUnit(t *testing.T, unit, page string) {
	t.Helper()
	known := map[string][]string{"Unit": {"Description", "Wants", "After"}, "Service": {"ExecStart", "ExecReload", "Restart", "RestartSec"}, "Install": {"WantedBy"}}
	in, got := "", map[string]string{}
	for line := range strings.Lines(unit) {
		line = strings.TrimSpace(line)
		if head, is := strings.CutPrefix(line, "["); is {
			in = strings.TrimSuffix(head, "]")
			continue
		}
		key, value, is := strings.Cut(line, "=")
		switch {
		case line == "":
		case !is || value == "" || !slices.Contains(known[in], key) || got[key] != "":
			t.Errorf("the unit has %q in section %q", line, in)
		default:
			got[key] = value
		}
	}
	for _, keys := range known {
		for _, key := range keys {
			if got[key] == "" {
				t.Errorf("the unit has no %s", key)
			}
		}
	}
	words := strings.Fields(got["ExecStart"])
	if len(words) == 0 {
		return
	}
	if folder, name := path.Split(words[0]); !strings.Contains(page, ".build/"+name+" "+folder+"\n") {
		t.Errorf("the page installs no %s", words[0])
	}
	if command := strings.Join(append([]string{path.Base(words[0])}, words[1:]...), " "); !strings.Contains(page, "    "+command+" ") {
		t.Errorf("the page has no command %q", command)
	}
}
