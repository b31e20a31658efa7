package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// manifest is what was installed on the node, so that uninstalling removes no file of others. It is
// written before files change and again after.
type manifest struct {
	Release   string               `json:"release"`
	Conflists []string             `json:"conflists"` // paths at which ours may be; Publish writes to the last one
	Programs  map[string]installed `json:"programs"`  // by path
}

// installed is a program that Apply put on the node, or was about to.
type installed struct {
	Sums []string `json:"sha256"` // the old and the new one while Apply is at work
	// Replaced tells that there was a program that is not enipool's, which others may still call:
	// uninstalling leaves ours in its place.
	Replaced bool `json:"replaced,omitempty"`
}

// manifestPath is where the manifest lies.
func (manifest) manifestPath() string { return filepath.Join(StateDir, "install.json") }

// stagedConflist is where the network configuration waits for the agent.
func stagedConflist() string { return filepath.Join(StateDir, ConflistName) }

// readManifest reads the manifest; without one it is empty. A damaged one is an
// error, and empty too.
func (t Tree) readManifest() (manifest, error) {
	memory := manifest{Programs: map[string]installed{}}
	text, err := t.readFile(memory.manifestPath())
	if errors.Is(err, fs.ErrNotExist) {
		return memory, nil
	}
	var on manifest
	if err == nil {
		err = json.Unmarshal(text, &on)
	}
	if err != nil {
		return memory, fmt.Errorf("read %s: %w", memory.manifestPath(), err)
	}
	if on.Programs == nil {
		on.Programs = memory.Programs
	}
	return on, nil
}

func (t Tree) writeManifest(memory manifest) error {
	text, err := json.MarshalIndent(memory, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", memory.manifestPath(), err)
	}
	_, err = t.putFile(file{memory.manifestPath(), append(text, '\n'), 0o644})
	return err
}

// isOurs tells whether the program at path with the hash is one that we put there.
func (m manifest) isOurs(path, sum string) bool { return slices.Contains(m.Programs[path].Sums, sum) }

// publishPath is where Publish puts the network configuration, "" for nowhere.
func (m manifest) publishPath() string {
	if len(m.Conflists) == 0 {
		return ""
	}
	return m.Conflists[len(m.Conflists)-1]
}

// publishAt makes path the place where Publish puts the network configuration.
func (m *manifest) publishAt(path string) {
	m.Conflists = append(slices.DeleteFunc(slices.Clone(m.Conflists), func(p string) bool { return p == path }), path)
}
