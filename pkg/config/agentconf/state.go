package agentconf

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// stateLine is the key in a file that is no YAML any more.
var stateLine = regexp.MustCompile(`(?m)^state:[ \t]+["']?(/[^\s"'#]+)`)

// StatesOf returns where the agent's own file may be, by a configuration that need not be right:
// where it says, and where it is by default.
func StatesOf(text []byte) []string {
	var file map[string]any
	said := ""
	if err := yaml.Unmarshal(text, &file); err == nil {
		said, _ = file["state"].(string)
	} else if m := stateLine.FindSubmatch(text); m != nil {
		said = string(m[1])
	}
	usual := Default().State
	if said == "" || said == usual || !strings.HasPrefix(said, "/") {
		return []string{usual}
	}
	return []string{said, usual}
}
