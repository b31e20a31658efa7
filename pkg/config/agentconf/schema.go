package agentconf

import (
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config/keys"
)

// Schema returns the JSON schema of the file.
func Schema() []byte {
	c := Default()
	return keys.Schema("enipool-agent", "Made from the table of keys by `make keys`. agent.yaml explains every key.", allKeys(&c), sections...)
}

// headWidth is how long the lines of the file's head are at most.
const headWidth = 90

// Head returns the lines of the file's head that say which changes need a restart.
func Head() string {
	c := Default()
	var names []string
	for _, k := range allKeys(&c) {
		if k.Needs == keys.AtRestart {
			names = append(names, k.Name)
		}
	}
	text, line := "", "# Changes to the file apply immediately, but for these keys, which need a restart of the agent:"
	words := slices.Concat(strings.Fields(line), strings.Fields(strings.Join(names, ", ")+"."))
	line = words[0]
	for _, word := range words[1:] {
		if len(line)+1+len(word) > headWidth {
			text, line = text+line+"\n", "#"
		}
		line += " " + word
	}
	return text + line + "\n"
}
