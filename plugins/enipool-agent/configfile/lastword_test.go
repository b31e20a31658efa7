package configfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

// On a new node nothing is kept, so that an agent does not start with a wrong file: who looks at the node cache that is
// missing reads why, with when and who said so, also where the file is no YAML any more.
func TestWhoMissesTheNodeCacheReadsWhyNoAgentStarts(t *testing.T) {
	for name, wrong := range map[string]string{"a key": "cache: CACHE\ncolor: red\n", "no YAML": "cache: CACHE\nnode: [n1\n"} {
		cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), "run", "node.cache")}
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(wrong, "CACHE", cache.Path)), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1e9, 0)
		if err := LeaveWord(file, errors.New("agent.yaml: color: unknown key (line 2)"), at); err != nil {
			t.Fatal(err)
		}
		err := cache.View(t.Context(), func(*ipam.State) error { return nil })
		want := fmt.Sprintf("it last said: enipool-agent (process %d) did not start at 2001-09-09T01:46:40Z: agent.yaml: color: unknown key (line 2)", os.Getpid())
		if !errors.Is(err, nodecache.ErrMissing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		err = cache.WithoutAgent(func() error { // an agent has the same lock
			if err := cache.SetWhy("works"); err != nil {
				t.Error(err)
			}
			var other *nodecache.AgentError
			if err := LeaveWord(file, errors.New("x"), at); !errors.As(err, &other) || cache.Why() != "works" {
				t.Errorf("beside an agent: %v, %q", err, cache.Why())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := LeaveWord(filepath.Join(t.TempDir(), "none.yaml"), errors.New("x"), time.Now()); err != nil {
		t.Error(err)
	}
}
