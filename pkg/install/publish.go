package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// ErrNotStaged is returned by Publish where nothing was installed, or it can't be
// seen from here: the network configuration is then a person's to put in place.
var ErrNotStaged = errors.New("no network configuration is staged at " + StateDir)

// Publish puts the staged network configuration where the runtime finds it, which
// turns the node Ready: call it when pods can get addresses, with the path of the
// node cache they get them from. It returns the path it wrote, "" if all was in
// place. It is cheap to repeat, and repeating it puts back a configuration that got lost.
// ErrNotStaged is no failure on a node whose network configuration a person manages.
func (t Tree) Publish(ctx context.Context, cache string) (path string, err error) {
	todo, err := t.findUnpublished(cache)
	if err != nil || todo == nil {
		return "", err
	}
	unlock, err := t.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	// Another run may have been at work until now.
	if todo, err = t.findUnpublished(cache); err != nil || todo == nil {
		return "", err
	}
	if err := t.replaceFile(*todo); err != nil {
		return "", fmt.Errorf("publish %s: %w", todo.path, withRemedy(err))
	}
	return todo.path, nil
}

// findUnpublished returns the network configuration to publish, nil if there is none.
func (t Tree) findUnpublished(cache string) (*file, error) {
	text, err := t.readFile(stagedConflist())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotStaged
	}
	memory, err2 := t.readManifest()
	if err = errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("publish network configuration: %w; run enipool-agent install again", err)
	}
	at := file{memory.publishPath(), text, 0o600}
	if t.holds(at) {
		return nil, nil
	}
	parsed, err := ParseConflist(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("publish %s: %w", stagedConflist(), err)
	case parsed.CachePath != cache:
		return nil, fmt.Errorf("publish %s: it has cachePath %s and the agent has cache %s: they must be the same", stagedConflist(), parsed.CachePath, cache)
	case at.path == "":
		return nil, fmt.Errorf("publish %s: where to is not known; run enipool-agent install again", stagedConflist())
	case !t.hasDir(filepath.Dir(at.path)):
		// Not made here: in a container it would be the container's own.
		return nil, fmt.Errorf("publish %s: there is no folder %s; mount the node's into the container", stagedConflist(), filepath.Dir(at.path))
	}
	return &at, nil
}

// withdrawConflist removes a network configuration that an earlier boot of the node left: with it
// the node would be Ready before the agent can serve.
func (t Tree) withdrawConflist(ctx context.Context, at string, say func(Line)) error {
	text, err := t.readFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read network configuration: %w", withRemedy(err))
	}
	_, why := t.countUsed(ctx, text)
	if !errors.Is(why, nodecache.ErrBoot) && !errors.Is(why, nodecache.ErrMissing) {
		return nil // the cache is of this boot: an agent has published it, and pods may run
	}
	removed, err := t.removeFile(at)
	if removed {
		say(Linef(Withdrew, "%s: %v; the agent publishes it again when it can serve", at, why))
	}
	return err
}

// countUsed returns how many addresses of the network configuration's pool are used by
// pods, or what is wrong with the pool. Where the pool can't be seen from here it
// returns 0 and no error.
func (t Tree) countUsed(ctx context.Context, conflist []byte) (n int, err error) {
	parsed, err := ParseConflist(conflist)
	if err != nil || !t.hasDir(filepath.Dir(filepath.Dir(parsed.CachePath))) {
		return 0, nil
	}
	path, err := t.Target(parsed.CachePath)
	if err != nil {
		return 0, err
	}
	err = nodecache.Cache{Path: path}.View(ctx, func(s *ipam.State) error {
		n = len(s.Used())
		return nil
	})
	return n, err
}

// First returns the network configurations that runtimes take before the published one, by path, none where
// nothing was published. Somebody may have put them there since the node was checked.
func (t Tree) First() ([]string, error) {
	m, err := t.readManifest()
	if err != nil || m.publishPath() == "" {
		return nil, err
	}
	dir, name := filepath.Split(m.publishPath())
	at, err := t.Target(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(at) // by name, as runtimes read them
	if err != nil {
		return nil, withRemedy(err)
	}
	var before []string
	for _, e := range entries {
		if !e.IsDir() && IsConfiguration(e.Name()) && e.Name() < name {
			before = append(before, filepath.Join(dir, e.Name()))
		}
	}
	return before, nil
}
