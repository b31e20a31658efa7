package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// manifest is the node's memory of what was installed, so that uninstalling takes
// no file of others. It is written before files change and again after.
type manifest struct {
	Release   string               `json:"release"`
	Conflists []string             `json:"conflists"` // where ours may be; the last one is where Publish puts it
	Programs  map[string]installed `json:"programs"`  // by path
}

// installed is a program that we put on the node, or were about to.
type installed struct {
	Sums []string `json:"sha256"` // of all that it can be
	// Replaced tells that another's program was there before, which others may
	// still call: uninstalling leaves ours in its place.
	Replaced bool `json:"replaced,omitempty"`
}

// at is where the manifest lies.
func (manifest) at() string { return filepath.Join(StateDir, "install.json") }

// staged is where the network configuration waits for the agent.
func staged() string { return filepath.Join(StateDir, ConflistName) }

// remembered reads the manifest; without one it is empty. A damaged one is an
// error, and empty too.
func (t Tree) remembered() (manifest, error) {
	m := manifest{Programs: map[string]installed{}}
	text, err := t.read(m.at())
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	var on manifest
	if err == nil {
		err = json.Unmarshal(text, &on)
	}
	if err != nil {
		return m, fmt.Errorf("read %s: %w", m.at(), err)
	}
	if on.Programs == nil {
		on.Programs = m.Programs
	}
	return on, nil
}

func (t Tree) remember(m manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", m.at(), err)
	}
	_, err = t.put(file{m.at(), append(text, '\n'), 0o644})
	return err
}

// made tells whether the program at path with the hash is one that we put there.
func (m manifest) made(path, sum string) bool { return slices.Contains(m.Programs[path].Sums, sum) }

// conflist is where Publish puts the network configuration, "" for nowhere.
func (m manifest) conflist() string {
	if len(m.Conflists) == 0 {
		return ""
	}
	return m.Conflists[len(m.Conflists)-1]
}

// publishAt makes path the place where Publish puts the network configuration.
func (m *manifest) publishAt(path string) {
	m.Conflists = append(slices.DeleteFunc(slices.Clone(m.Conflists), func(p string) bool { return p == path }), path)
}
