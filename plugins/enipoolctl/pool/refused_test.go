package pool

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/status"
)

// A configuration that the agent does not take over is seen: nothing else differs, and the node is ready.
func TestARefusedConfigurationIsNotedAndRed(t *testing.T) {
	cache := nodecache.Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
	if note := refusedFile(cache); note != "" {
		t.Errorf("without an agent: %q", note)
	}
	for refused, want := range map[*status.Refused]string{nil: "", {Error: "pool.bacth: unknown key"}: "the agent refuses the changed configuration: "} {
		if err := status.Beside(cache.Path).Write(status.Status{Refused: refused}); err != nil {
			t.Fatal(err)
		}
		if note := refusedFile(cache); !strings.HasPrefix(note, want) || (note == "") != (want == "") {
			t.Errorf("%q, want %q", note, want)
		}
	}
	if !isBad("refused:    the changed configuration") || isBad("demand:     3, need 16, target 16: steady") {
		t.Error("not what is bad is red")
	}
}
