package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// Who is not root reads that first, and once, whatever else failed for it.
func TestThatARunNeedsRootIsSaidFirst(t *testing.T) {
	refused := fmt.Errorf("try nftables: %w", unix.EPERM)
	key := errors.New("agent.yaml: vpcCIDR: unknown key")
	for _, tt := range []struct {
		uid         int
		err, failed error
		want        string
	}{
		{1000, refused, refused, "needs root on the node, and runs as user 1000: try nftables: operation not permitted"},
		{1000, key, &fs.PathError{Op: "open", Path: "/var/lib/enipool/agent.json.good", Err: unix.EACCES}, "needs root on the node, and runs as user 1000: agent.yaml: vpcCIDR: unknown key"},
		{1000, key, key, "agent.yaml: vpcCIDR: unknown key"},
		{0, refused, refused, "try nftables: operation not permitted"},
	} {
		err := NeedsRoot(tt.uid, tt.err, tt.failed)
		if err = NeedsRoot(tt.uid, err, err); err.Error() != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if err := NeedsRoot(1000, &NodeError{refused}, refused); !errors.As(err, new(*NodeError)) {
		t.Errorf("%v is no failure of the node any more", err)
	}
	if err := NeedsRoot(1000, nil, nil); err != nil {
		t.Error(err)
	}
}
