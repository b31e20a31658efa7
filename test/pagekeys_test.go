package test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/config/operatorconf"
)

// keysOf returns the keys of a schema, those in sections as section.key.
func keysOf(t *testing.T, schema []byte, all map[string]bool) {
	t.Helper()
	var top struct {
		Properties map[string]struct{ Properties map[string]any }
	}
	if err := json.Unmarshal(schema, &top); err != nil || len(top.Properties) < 5 {
		t.Fatalf("%d keys: %v", len(top.Properties), err)
	}
	for name, section := range top.Properties {
		all[name] = true
		for key := range section.Properties {
			all[name+"."+key] = true
		}
	}
}

// Whoever is told of a key of agent.yaml or operator.yaml by its section finds it there: in pages, in comments of files and in what
// programs say.
func TestKeysThatPeopleAreToldAreInTheirSections(t *testing.T) {
	keys, told := map[string]bool{}, map[string]bool{}
	keysOf(t, agentconf.Schema(), keys)
	keysOf(t, operatorconf.Schema(), keys)
	for where, text := range texts(t) {
		if strings.HasSuffix(where, ".go") {
			text = strings.Join(regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`).FindAllString(text, -1), "\n")
		}
		for _, m := range regexp.MustCompile("(?m)[\\s(`\"]((?:pool|cloud|kubernetes)\\.[a-z][a-zA-Z]+)(?:[^\\w/(.]|\\.\\s|$)").FindAllStringSubmatch(text, -1) {
			told[m[1]] = true
			if !keys[m[1]] && m[1] != "cloud.go" {
				t.Errorf("%s: neither agent.yaml nor operator.yaml has %s", where, m[1])
			}
		}
	}
	if len(told) < 40 {
		t.Errorf("only %d keys", len(told))
	}
	_, table, _ := strings.Cut(read(t, "README.md"), "| key of the agent |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`(?:, `(\\w+)`)* \\|").FindAllStringSubmatch(table, -1) {
		for _, key := range regexp.MustCompile(`\w+`).FindAllString(m[0], -1) {
			if rows++; !keys["pool."+key] {
				t.Errorf("README.md: agent.yaml has no key %s under pool", key)
			}
		}
	}
	if rows < 8 {
		t.Errorf("only %d rows", rows)
	}
}

// A code of the CNI protocol that a page names is in the table of codes, which pkg/cni compares with the plugin's.
func TestCodesThatPeopleAreToldAreInTheTable(t *testing.T) {
	table, told := read(t, "conf/TROUBLESHOOTING.md"), 0
	for _, page := range pages(t) {
		for _, m := range regexp.MustCompile(`(exit )?\bcode (\d+)`).FindAllStringSubmatch(read(t, page), -1) {
			if told++; !strings.Contains(table, "\n| "+m[2]+" | ") && m[1] == "" {
				t.Errorf("%s: conf/TROUBLESHOOTING.md does not explain %s", page, m[0])
			}
		}
	}
	if told < 5 {
		t.Errorf("only %d codes", told)
	}
}
