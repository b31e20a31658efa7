package nodecache

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// viewError is what a reader of the cache is told, with PATH for its path.
func viewError(t *testing.T, c Cache) string {
	t.Helper()
	err := c.View(t.Context(), func(*ipam.State) error { return nil })
	return strings.ReplaceAll(fmt.Sprint(err), c.Path, "PATH")
}

func TestAMissingCacheIsToldWithWhatItsAgentSays(t *testing.T) {
	c := newCache(t, small())
	remove(t, c.Path)
	if err := c.SetWhy("target 0, cause: cloud: no answer"); err != nil {
		t.Fatal(err)
	}
	want := "node cache is missing: PATH; no agent has made it, and no agent runs on this node: start it (" + whereAgent + "); " +
		"it last said: target 0, cause: cloud: no answer; `enipool-agent --config FILE --dry-run` says what is wrong with its file; " +
		"on a node without an agent: `enipoolctl pool load -f inventory.yaml`"
	if diff := cmp.Diff(want, viewError(t, c)); diff != "" {
		t.Error(diff)
	}
	err := c.WithoutAgent(func() error { // an agent holds the same lock
		want := fmt.Sprintf("node cache is missing: PATH; an agent (process %d) makes it and says: target 0, cause: cloud: no answer", os.Getpid())
		if diff := cmp.Diff(want, viewError(t, c)); diff != "" {
			t.Error(diff)
		}
		return c.SetWhy("")
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestANewerCacheIsToldWithOneCure(t *testing.T) {
	c := newCache(t, small())
	write(t, c.Path, resum(bytesOf(t, c.Path), 0, magic+" 7 min 3"))
	want := "PATH: node cache has a newer format: it is version 7 and wants a reader of version 3 or later, this is 2: use plugin, agent and enipoolctl of one release"
	if diff := cmp.Diff(want, viewError(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestAFolderInPlaceOfTheCacheIsNamedWithWhatToDo(t *testing.T) {
	c := newCache(t, small())
	remove(t, c.Path)
	if err := os.Mkdir(c.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	const want = "node cache is damaged: PATH is a folder: remove it"
	if diff := cmp.Diff(want, viewError(t, c)); diff != "" {
		t.Error(diff)
	}
	for name, err := range map[string]error{
		"update":  c.Update(t.Context(), func(*ipam.State) error { return nil }),
		"replace": c.Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return small(), nil }),
	} {
		if text := strings.ReplaceAll(fmt.Sprint(err), c.Path, "PATH"); !strings.Contains(text, "PATH is a folder: remove it") || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
