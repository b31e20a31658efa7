package agentconf

import (
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
)

// pathLine is a key with a path in a file that is no YAML any more.
var pathLine = regexp.MustCompile(`(?m)^(state|cache):[ \t]+["']?(/[^\s"'#]+)`)

// CacheOf returns where the node cache is, by a configuration that need not be right.
func CacheOf(text []byte) string {
	if said := pathIn(text, "cache"); strings.HasPrefix(said, "/") {
		return said
	}
	return Default().Cache
}

// pathIn returns what the key says, "" where that is not known.
func pathIn(text []byte, key string) (said string) {
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err == nil {
		said, _ = file[key].(string)
		return said
	}
	for _, m := range pathLine.FindAllSubmatch(text, -1) {
		if string(m[1]) == key {
			return string(m[2])
		}
	}
	return ""
}

// StatesOf returns where the agent's own file may be, by a configuration that need not be right:
// where it says, and where it is by default.
func StatesOf(text []byte) []string {
	said := pathIn(text, "state")
	usual := Default().State
	if said == "" || said == usual || !strings.HasPrefix(said, "/") {
		return []string{usual}
	}
	return []string{said, usual}
}
