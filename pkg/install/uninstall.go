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

// Uninstall removes from the node what Apply put on it, in the opposite order, and says each thing
// it did. Pods run on. Of Options it reads only the tree, the folders, Own and the paths of System;
// the caller holds the tree's lock. Repeated it finds nothing to do.
func Uninstall(ctx context.Context, options Options, say func(Line)) error {
	tree := options.Tree
	memory, err := tree.readManifest()
	if err != nil {
		say(Linef(Warning, "%v; programs can't be told from others' and stay", err))
	}
	memory.publishAt(options.publishedPath())
	tree.warnOfPods(ctx, memory, say)
	// The staged one first: from here on the agent publishes nothing.
	paths := append([]string{stagedConflist()}, memory.Conflists...)
	for _, system := range options.System {
		paths = append(paths, system.Path)
	}
	for _, path := range paths {
		if err := tree.sayRemove(path, say); err != nil {
			return err
		}
	}
	if err := tree.removePrograms(memory, filepath.Join(options.BinDir, config.PluginType), say); err != nil {
		return err
	}
	for _, path := range options.Own {
		if err := tree.sayRemove(path, say); err != nil {
			return err
		}
	}
	return tree.forgetInstall(memory, paths, say)
}

// CacheInUse returns the path of the node cache that the installed network configuration
// names, "" where there is none.
func (o Options) CacheInUse() string {
	memory, _ := o.Tree.readManifest() // Uninstall tells what is wrong with it
	memory.publishAt(o.publishedPath())
	for _, path := range append(memory.Conflists, stagedConflist()) {
		text, err := o.Tree.readFile(path)
		if err != nil {
			continue
		}
		if parsed, err := ParseConflist(text); err == nil {
			return parsed.CachePath
		}
	}
	return ""
}

// warnOfPods says what becomes of pods that still have addresses of ours.
func (t Tree) warnOfPods(ctx context.Context, memory manifest, say func(Line)) {
	for _, path := range memory.Conflists {
		text, err := t.readFile(path)
		if err != nil {
			continue
		}
		if n, _ := t.countUsed(ctx, text); n > 0 {
			say(Linef(Warning, "pods use %d addresses of enipool: they run on, but the runtime can't stop them before it has "+
				"a network configuration again, and nobody takes their addresses back; to avoid that drain the node first", n))
		}
	}
}

func (t Tree) sayRemove(path string, say func(Line)) error {
	removed, err := t.removeFile(path)
	if removed {
		say(Linef(Removed, "%s", path))
	}
	return err
}

// removePrograms removes the programs that are as Apply put them there. A plugin at the usual place
// that the manifest does not know stays: somebody may have put it there by hand.
func (t Tree) removePrograms(memory manifest, plugin string, say func(Line)) error {
	others := t.readOthers(memory)
	for _, path := range slices.Sorted(maps.Keys(memory.Programs)) {
		text, err := t.readFile(path)
		caller := callerOf(filepath.Base(path), others)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", path, withRemedy(err))
		case !memory.isOurs(path, hexSum(text)):
			say(Linef(Kept, "%s: it was changed after it had been installed", path))
		case memory.Programs[path].Replaced:
			say(Linef(Kept, "%s: there was another one before, which others may need", path))
		// Without it no pod of that network could start or end.
		case caller != "":
			say(Linef(Kept, "%s: %s needs it", path, caller))
		default:
			if err := t.sayRemove(path, say); err != nil {
				return err
			}
		}
	}
	if _, known := memory.Programs[plugin]; !known {
		if _, err := t.readFile(plugin); err == nil {
			say(Linef(Kept, "%s: nothing tells how it came there; remove it by hand if nobody needs it", plugin))
		}
	}
	return nil
}

// readOthers returns the network configurations of others, by path.
func (t Tree) readOthers(memory manifest) map[string]string {
	texts := map[string]string{}
	for _, conflist := range memory.Conflists {
		dir := filepath.Dir(conflist)
		at, err := t.Target(dir)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(at) // none if there is no folder
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if slices.Contains(memory.Conflists, path) || !IsConfiguration(path) {
				continue
			}
			if text, err := t.readFile(path); err == nil {
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

// forgetInstall removes the leftovers of runs that were cut off, and last the memory.
func (t Tree) forgetInstall(memory manifest, paths []string, say func(Line)) error {
	var dirs []string
	for _, path := range append(paths, slices.Collect(maps.Keys(memory.Programs))...) {
		dirs = append(dirs, filepath.Dir(path))
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := t.removeUnfinished(dir); err != nil {
			return err
		}
	}
	return t.sayRemove(memory.manifestPath(), say)
}
