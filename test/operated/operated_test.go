// Package operated tests what ships where an operator calls the cloud: the operator's and the agent's own processes, the
// plugin, a real API server, and a simulated VPC of real links.
package operated

import (
	"fmt"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// has waits until the pods use what they should, of a pool between those bounds.
func (b *bed) has(what string, least, most int) {
	b.Helper()
	b.complete(what)
	if s, err := b.page(); err != nil || s.Addresses.Attached < least || s.Addresses.Attached > most {
		b.Errorf("%s: %+v, want %d to %d; %v", what, s.Addresses, least, most, err)
	}
}

// Pods get addresses that the operator has asked the cloud for; a node goes on while the operator is away; and what no pod needs
// any more goes back.
func TestPodsOfANodeWhoseOperatorCallsTheCloud(t *testing.T) {
	t.Parallel()
	b := newBed(t, "operated", sim.ReuseLowest)
	first, _ := b.operator("operator")
	agent := b.agent()
	b.up("a", "b", "c", "d", "e", "f")
	b.has("a pool for six pods", 8, 12)

	// Away for a while: what is free goes to pods, and the kernel's is untouched.
	first.Kill()
	b.up("g")
	b.must(b.vpc.Account.Check())
	b.operator("second") // leads when the lease of the first has run out
	b.up("h", "i", "j", "k", "l", "m")
	b.has("a pool for thirteen", 13, 20)

	gone := []string{"h", "i", "j", "k", "l", "m", "g", "f"}
	b.end(gone...)
	b.remove(gone...)
	if !agent.Stop(30 * time.Second) {
		t.Error("the agent did not end")
	}
	b.agent() // goes on with what the one before has begun
	b.api.Eventually("less for five", func() error {
		s, err := b.page()
		if err == nil && s.Addresses.Attached > 11 {
			err = fmt.Errorf("%+v", s.Addresses)
		}
		return err
	})
	b.has("a pool for five", 5, 11)
}
