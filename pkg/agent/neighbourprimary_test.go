package agent

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Another plugin's pods have addresses of the primary ENI, and people tell enipool to leave that ENI
// alone. When one of those pods ends, the other plugin keeps the address for its next one: enipool has
// no business with it, and takes it from nobody.
func TestWhatOthersHeldOnAPrimaryENIThatGetsNoneStaysTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := onItsPrimary(t)
		var theirs []netip.Addr
		n.mu.Lock()
		n.foreign = map[netip.Addr]string{}
		for _, line := range n.cached.Addresses {
			if line.ENI == 0 && line.State == eni.Free && len(theirs) < 3 {
				theirs = append(theirs, line.Addr)
				n.foreign[line.Addr] = "eni5f8c1a2b3c4"
			}
		}
		n.mu.Unlock()
		n.start(-1, false) // while the primary ENI is for pods, they are held
		sleep(5 * time.Minute)
		if held := n.heldAddrs(); len(theirs) != 3 || !slices.Equal(held, theirs) {
			t.Fatalf("held %v, want %v", held, theirs)
		}
		n.stop()
		n.over, n.conf.Pool.FirstENI = nil, 1
		n.start(-1, false)
		defer n.stop()
		sleep(time.Hour)
		n.mustStillHave(t, theirs)
		n.mu.Lock()
		clear(n.foreign) // their pods end
		n.mu.Unlock()
		sleep(time.Hour)
		n.mustStillHave(t, theirs)
	})
}
