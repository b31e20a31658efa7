package firewall

import (
	"net/netip"
	"slices"
	"testing"
)

// iptables prints a quote in a comment with a backslash before it. The plugins of
// containernetworking/plugins write such comments.
func TestQuotesInCommentsEndNoWord(t *testing.T) {
	for line, want := range map[string][]string{
		"": nil, "  ": nil, `-j  X`: {"-j", "X"},
		`--comment "one two" -j X`:                   {"--comment", "one two", "-j", "X"},
		`--comment "name: \"pods\" id: \"4f\"" -j X`: {"--comment", `name: "pods" id: "4f"`, "-j", "X"},
		`--comment "it\'s a \\" -j X`:                {"--comment", `it's a \`, "-j", "X"},
		`--comment "" -j X`:                          {"--comment", "", "-j", "X"},
		`--comment "without an end`:                  {"--comment", "without an end"},
		`--comment "without an end\`:                 {"--comment", `without an end\`},
	} {
		if got := splitQuoted(line); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	w := walk{flow: Flow{Src: netip.MustParseAddr("10.0.0.11")}}
	r := w.textRule(splitQuoted(`-s 10.0.0.0/24 -m comment --comment "name: \"bridge\" id: \"4f\"" -j CNI-4f`))
	if r.match != matches || r.action != jumps || r.chain != "CNI-4f" {
		t.Errorf("match %d, action %d, chain %q", r.match, r.action, r.chain)
	}
}

func TestThePortInACommentIsNone(t *testing.T) {
	for rule, want := range map[string]uint16{
		`-p tcp --dport 80 -j X`: 80, `-p tcp ! --dport 80 -j X`: 0, `-p tcp --dport 80:90 -j X`: 0, `-p tcp -j X`: 0,
		`-m comment --comment "with --dport 80 " -j X`:              0,
		`-m comment --comment "a \" quote" --dport 80 -j X`:         80,
		`-m comment --comment "a \" quote and --dport 80 in" -j X`:  0,
		`-m comment --comment "name: \"x\" --dport 81 " --dport 80`: 80,
	} {
		if got := numberOf(rule); got != want {
			t.Errorf("%s: %d, want %d", rule, got, want)
		}
	}
}
