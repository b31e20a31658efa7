package operator

import (
	"context"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
)

// noteBehind notes that the watch tells less of a claim than is known. It may be late, and tells the rest soon. Else the store was put back: then a
// read says so, since nothing is written by which it would be seen.
func (t *term) noteBehind(e claims.Event) {
	c, name := t.claiming, e.Claim.Name
	switch _, is := c.behind[name]; {
	case e.Deleted || !c.known.IsBehind(e.Claim):
		delete(c.behind, name)
	case !is:
		c.behind[name] = t.now().Mono + t.o.Lease.Settle
	}
}

// readBehind reads the claims of which the watch has told no more since.
func (t *term) readBehind(now time.Duration) {
	c := t.claiming
	for name, at := range c.behind {
		if at > now {
			c.next = min(c.next, at)
			continue
		}
		none := func(context.Context) (*crd.AddressClaim, error) { return nil, nil } // what is read after that counts
		if t.request("claim "+name, name, none, nil) {
			delete(c.behind, name)
		} else {
			c.behind[name] = now + t.o.Lease.Settle
		}
	}
}
