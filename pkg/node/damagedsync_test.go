package node

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/google/go-cmp/cmp"
)

// A record is damaged after the agent has read the node cache and before it compares the kernel: what the
// record said of a pod is not known, and the pod keeps what leads its packets until a rebuild.
func TestADamagedRecordTakesNothingOutOfTheKernel(t *testing.T) {
	n, _ := withDelegated(t)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	was := kernel(t)
	sound, err := os.ReadFile(n.Cache.Path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(sound), "pods db eth0", "pods dc eth0", 1)
	if damaged == string(sound) {
		t.Fatal("the cache has no record of the pod")
	}
	if err := os.WriteFile(n.Cache.Path, []byte(damaged), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := n.Sync(t.Context(), nil, nil); !errors.Is(err, nodecache.ErrDamaged) || len(lines) > 0 {
		t.Errorf("%q, %v; want ErrDamaged", lines, err)
	}
	if diff := cmp.Diff(was, kernel(t)); diff != "" {
		t.Errorf("the kernel changed:\n%s", diff)
	}
	if err := os.WriteFile(n.Cache.Path, sound, 0o600); err != nil {
		t.Fatal(err)
	}
}
