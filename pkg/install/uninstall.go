package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/config"
)

// Uninstall takes off the node what Apply put on it, in the opposite order, and
// says each thing it did. Pods run on. Of Options only the tree, the folders, the
// agent's own files and the system files' paths count; hold the tree's lock. Repeated it finds nothing to do.
func Uninstall(ctx context.Context, o Options, say func(Line)) error {
	t := o.Tree
	m, err := t.remembered()
	if err != nil {
		say(Linef(Warning, "%v; programs can't be told from others' and stay", err))
	}
	m.publishAt(o.published())
	t.warnOfPods(ctx, m, say)
	// The staged one first: from here on the agent publishes nothing.
	paths := append([]string{staged()}, m.Conflists...)
	for _, f := range o.System {
		paths = append(paths, f.Path)
	}
	for _, path := range paths {
		if err := t.takeOff(path, say); err != nil {
			return err
		}
	}
	if err := t.takePrograms(m, filepath.Join(o.BinDir, config.PluginType), say); err != nil {
		return err
	}
	for _, path := range o.Own {
		if err := t.takeOff(path, say); err != nil {
			return err
		}
	}
	return t.forget(m, paths, say)
}

// CacheInUse returns the path of the node cache that the installed network configuration
// names, "" where there is none.
func (o Options) CacheInUse() string {
	m, _ := o.Tree.remembered() // Uninstall tells what is wrong with it
	m.publishAt(o.published())
	for _, path := range append(m.Conflists, staged()) {
		text, err := o.Tree.read(path)
		if err != nil {
			continue
		}
		if c, err := ParseConflist(text); err == nil {
			return c.CachePath
		}
	}
	return ""
}

// warnOfPods says what becomes of pods that still have addresses of ours.
func (t Tree) warnOfPods(ctx context.Context, m manifest, say func(Line)) {
	for _, path := range m.Conflists {
		text, err := t.read(path)
		if err != nil {
			continue
		}
		if n, _ := t.used(ctx, text); n > 0 {
			say(Linef(Warning, "pods use %d addresses of enipool: they run on, but the runtime can't stop them before it has "+
				"a network configuration again, and nobody takes their addresses back; to avoid that drain the node first", n))
		}
	}
}

func (t Tree) takeOff(path string, say func(Line)) error {
	removed, err := t.remove(path)
	if removed {
		say(Linef(Removed, "%s", path))
	}
	return err
}

// takePrograms removes the programs that are as we put them there. The plugin's
// usual place is looked at too: somebody may have put it there by hand.
func (t Tree) takePrograms(m manifest, plugin string, say func(Line)) error {
	others := t.others(m)
	for _, path := range slices.Sorted(maps.Keys(m.Programs)) {
		text, err := t.read(path)
		caller := callerOf(filepath.Base(path), others)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", path, hint(err))
		case !m.made(path, hexSum(text)):
			say(Linef(Kept, "%s: it was changed after it had been installed", path))
		case m.Programs[path].Replaced:
			say(Linef(Kept, "%s: there was another one before, which others may need", path))
		case caller != "":
			say(Linef(Kept, "%s: %s needs it", path, caller))
		default:
			if err := t.takeOff(path, say); err != nil {
				return err
			}
		}
	}
	if _, known := m.Programs[plugin]; !known {
		if _, err := t.read(plugin); err == nil {
			say(Linef(Kept, "%s: nothing tells how it came there; remove it by hand if nobody needs it", plugin))
		}
	}
	return nil
}

// others returns the network configurations of others, by path.
func (t Tree) others(m manifest) map[string]string {
	texts := map[string]string{}
	for _, conflist := range m.Conflists {
		dir := filepath.Dir(conflist)
		at, err := t.Target(dir)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(at) // none if there is no folder
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if slices.Contains(m.Conflists, path) || !IsConfiguration(path) {
				continue
			}
			if text, err := t.read(path); err == nil {
				texts[path] = string(text)
			}
		}
	}
	return texts
}

// callerOf returns which network configuration calls the program, "" for none. The
// loopback plugin is called with every one and named in none.
func callerOf(program string, others map[string]string) string {
	for _, path := range slices.Sorted(maps.Keys(others)) {
		if program == loopback || strings.Contains(others[path], `"`+program+`"`) {
			return path
		}
	}
	return ""
}

// forget removes the leftovers of runs that were cut off, and last the memory.
func (t Tree) forget(m manifest, paths []string, say func(Line)) error {
	var dirs []string
	for _, path := range append(paths, slices.Collect(maps.Keys(m.Programs))...) {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := t.sweep(dir); err != nil {
			return err
		}
	}
	return t.takeOff(m.at(), say)
}
