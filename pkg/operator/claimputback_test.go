package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
)

// claimBackup is the claims at a moment.
type claimBackup struct {
	version int
	claims  map[string]*crd.AddressClaim
}

func (s *claimStore) backUp() claimBackup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := claimBackup{s.version, map[string]*crd.AddressClaim{}}
	for name, c := range s.claims {
		b.claims[name] = c.DeepCopy()
	}
	return b
}

// putBack puts the claims back as they were. Watches list anew: they tell of what is there, and of what is no more.
func (s *claimStore) putBack(b claimBackup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = b.version
	for name, c := range s.claims {
		if b.claims[name] == nil {
			s.tell(claims.Event{Claim: c.DeepCopy(), Deleted: true})
		}
	}
	s.claims = map[string]*crd.AddressClaim{}
	for name, c := range b.claims {
		s.claims[name] = c.DeepCopy()
		s.tell(claims.Event{Claim: c.DeepCopy()})
	}
}

// passTime writes objects of others, so that versions rise.
func (s *claimStore) passTime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version += 1000
}

// A store that is put back has claims of lower versions than the leader knows. It goes on with those: their pods move, and people end them.
func TestClaimsOfAStoreThatWasPutBackGoOn(t *testing.T) {
	for name, then := range map[string]func(w *world, c *claimStore){
		"its pod moves": func(w *world, c *claimStore) {
			c.run("db-0", "node-000", "fixed")
			c.awaitPod(time.Minute, "db-0", "node-000")
		},
		"people end it": func(w *world, c *claimStore) {
			c.stop("db-0")
			c.wait(time.Minute)
			c.endClaim("10.0.200.0")
			w.until(2*time.Minute, func() bool { return c.claim("db-0") == nil })
		},
		"people end it and its pod comes back": func(w *world, c *claimStore) {
			c.endClaim("10.0.200.0")
			c.wait(time.Minute)
			c.run("db-0", "node-000", "fixed")
			c.awaitPod(time.Minute, "db-0", "node-000")
		},
	} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.run("db-0", "node-000", "fixed")
				c.awaitPod(3*time.Minute, "db-0", "node-000")
				c.wait(time.Minute)
				before := c.backUp()
				c.passTime()
				c.run("db-0", "node-001", "fixed")
				c.awaitPod(time.Minute, "db-0", "node-001")
				c.wait(time.Minute)
				c.putBack(before)
				c.wait(time.Minute)
				then(w, c)
			})
		})
	}
}

// A claim that has ended since is there again. Its address is taken, and a pod gets another one, or this one if it is of its name; it ends as before.
func TestAClaimThatIsThereAgainIsKnown(t *testing.T) {
	for _, name := range []string{"web-0", "web-1"} {
		t.Run(name, func(t *testing.T) {
			playClaims(t, setup{}, func(ctx context.Context, w *world, c *claimStore) {
				c.run("web-0", "node-000", "sticky")
				c.awaitPod(3*time.Minute, "web-0", "node-000")
				c.wait(time.Minute)
				c.stop("web-0")
				c.wait(time.Minute)
				before := c.backUp()
				c.passTime()
				w.until(10*time.Minute, func() bool { return c.claim("web-0") == nil })
				c.putBack(before)
				c.wait(time.Minute)
				c.run(name, "node-001", "sticky")
				c.awaitPod(time.Minute, name, "node-001")
				c.stop(name)
				w.until(10*time.Minute, func() bool { return c.claim("web-0") == nil && c.claim("web-1") == nil })
			})
		})
	}
}
