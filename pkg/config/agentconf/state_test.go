package agentconf

import (
	"slices"
	"testing"
)

func TestAWrongFileTellsWhereTheAgentsOwnIs(t *testing.T) {
	const usual = "/run/enipool/agent.json"
	for text, want := range map[string][]string{
		"":                                      {usual},
		"node: a\n":                             {usual},
		"state: /x/agent.json\n":                {"/x/agent.json", usual},
		"colour: red\nstate: '/x/a.json' # y\n": {"/x/a.json", usual},
		"state: " + usual:                       {usual},
		"state: x/agent.json\n":                 {usual},
		"state: [a]\n":                          {usual},
		// These are no YAML.
		"pool: [\nstate: /x/agent.json # there\nnode: a\n": {"/x/agent.json", usual},
		"pool: [\nstate: \"/x/agent.json\"\n":              {"/x/agent.json", usual},
		"pool: [\n  state: /x/agent.json\n":                {usual},
		"pool: [\n# state: /x/agent.json\n":                {usual},
	} {
		if got := StatesOf([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
