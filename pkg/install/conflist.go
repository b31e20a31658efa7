package install

import (
	_ "embed" // the network configuration that is used when nobody gives one
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/enipool/enipool/pkg/config"
)

// ConflistName is the file that the runtime reads. Runtimes take the first one by
// name in their folder.
const ConflistName = "10-enipool.conflist"

//go:embed 10-enipool.conflist
var defaultConflist string

// DefaultConflist returns the network configuration for a node whose owner does not
// give one.
func DefaultConflist() []byte { return []byte(defaultConflist) }

// Conflist is a checked network configuration.
type Conflist struct {
	Text      []byte
	Name      string   // of the network
	Versions  []string // of the protocol, which a runtime may choose from
	Plugins   []string // the programs it calls
	CachePath string   // the node cache that our plugin reads
}

// IsConfiguration tells whether runtimes take a file of the name for a network
// configuration.
func IsConfiguration(name string) bool {
	return slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(name))
}

var plain = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// entry is the part of a plugin's configuration that runtimes read.
type entry struct {
	Type string `json:"type"`
	IPAM struct {
		Type string `json:"type"`
	} `json:"ipam"`
}

// ParseConflist reads a network configuration, which must call enipool with keys that
// config.ParsePlugin takes.
func ParseConflist(text []byte) (Conflist, error) {
	var raw struct {
		Name        string                       `json:"name"`
		CNIVersion  string                       `json:"cniVersion"`
		CNIVersions []string                     `json:"cniVersions"`
		Plugins     []map[string]json.RawMessage `json:"plugins"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return Conflist{}, fmt.Errorf("read network configuration: %w", err)
	}
	parsed := Conflist{Text: text, Name: raw.Name, Versions: raw.CNIVersions}
	if raw.CNIVersion != "" && !slices.Contains(parsed.Versions, raw.CNIVersion) {
		parsed.Versions = append(parsed.Versions, raw.CNIVersion)
	}
	switch {
	case !plain.MatchString(parsed.Name):
		return parsed, fmt.Errorf("network configuration: name: %q: must be letters, digits, and inside it . _ -", parsed.Name)
	case raw.CNIVersion == "":
		return parsed, errors.New(`network configuration: cniVersion is missing; "1.0.0" is right for every runtime`)
	}
	for _, p := range raw.Plugins {
		if p == nil {
			p = map[string]json.RawMessage{}
		}
		p["name"], _ = json.Marshal(raw.Name) // as the runtime does
		p["cniVersion"], _ = json.Marshal(raw.CNIVersion)
		if err := parsed.addPlugin(p); err != nil {
			return parsed, err
		}
	}
	if !slices.Contains(parsed.Plugins, config.PluginType) {
		return parsed, fmt.Errorf("network configuration: plugins: none has the type, or the ipam.type, %q", config.PluginType)
	}
	return parsed, nil
}

// addPlugin adds the programs that one plugin's configuration calls, and checks it if it calls
// enipool.
func (c *Conflist) addPlugin(p map[string]json.RawMessage) error {
	text, err := json.Marshal(p)
	var shared entry
	if err == nil {
		err = json.Unmarshal(text, &shared)
	}
	if err != nil {
		return fmt.Errorf("network configuration: plugins: %w", err)
	}
	if !plain.MatchString(shared.Type) {
		return fmt.Errorf("network configuration: plugins: type: %q: must be the name of a program, without its folder", shared.Type)
	}
	types := []string{shared.Type}
	// As the main plugin enipool calls no IPAM plugin, whatever that section says.
	if shared.IPAM.Type != "" && shared.Type != config.PluginType {
		types = append(types, shared.IPAM.Type)
	}
	for _, name := range types {
		if !plain.MatchString(name) {
			return fmt.Errorf("network configuration: plugins: ipam.type: %q: must be the name of a program, without its folder", name)
		}
		if !slices.Contains(c.Plugins, name) {
			c.Plugins = append(c.Plugins, name)
		}
	}
	if !slices.Contains(types, config.PluginType) {
		return nil
	}
	ours, err := config.ParsePlugin(text)
	if err != nil {
		return fmt.Errorf("network configuration: %w", err)
	}
	c.CachePath = ours.CachePath
	return nil
}
