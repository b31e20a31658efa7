package operator

import (
	"context"
	"net/netip"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/operator/claims"
)

// search is for ENIs that have addresses which the cloud does not give: a Node may have been deleted while its instance lives on, and nobody describes that
// one any more.
type search struct {
	under  bool
	wanted map[netip.Addr]bool // those that the next one is for
}

// seek looks for who has addresses of claims. Until it is known they count as on their way.
func (t *term) seek(addrs []netip.Addr) {
	c := t.claiming
	for _, a := range addrs {
		if c.known.Object(a) == nil {
			continue // an Elastic one: the pod gets another
		}
		if c.search.wanted == nil {
			c.search.wanted = map[netip.Addr]bool{}
		}
		c.search.wanted[a] = true
		c.known.NoteSought(a, true)
	}
	t.searchIfDue()
}

// searchIfDue reads the ENIs of the VPC for the addresses that are wanted, one search at a time.
func (t *term) searchIfDue() {
	c := t.claiming
	if c.search.under || len(c.search.wanted) == 0 {
		return
	}
	wanted := c.search.wanted
	c.search = search{under: true}
	t.under.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, shortJob)
		defer cancel()
		found := map[netip.Addr]cloud.Listed{}
		_, err := t.o.Region.List(ctx, func(page []cloud.Listed) error {
			for _, l := range page {
				for _, a := range l.Addresses {
					if wanted[a] {
						found[a] = l // of one that comes twice the later one counts
					}
				}
			}
			return nil
		})
		t.post(func(t *term) { t.endSearch(wanted, found, err) })
	})
}

// endSearch takes in what a search has found. What it has not found is somebody else's, as the cloud has said.
func (t *term) endSearch(wanted map[netip.Addr]bool, found map[netip.Addr]cloud.Listed, err error) {
	c := t.claiming
	c.search.under, c.changed = false, true
	if err != nil {
		t.sayOnce("the ENIs that have addresses of topologies can't be listed; they are looked for again when the cloud refuses one", err)
	}
	for a := range wanted {
		c.known.NoteSought(a, false)
		if l, is := found[a]; is && t.isLeftBehind(a, l) {
			t.o.Log.Info("an address of a topology is on an ENI of an instance that has no Node any more, and is taken from there", "address", a, "eni", l.ID, "instance", l.Instance)
			c.known.NoteLeft(a, claims.Left{ENI: l.ID, Instance: l.Instance})
		}
	}
	t.searchIfDue()
}

// isLeftBehind tells whether an ENI is this cluster's, by its tags or, for a primary one, by the claim that was bound there, and its instance has no Node.
func (t *term) isLeftBehind(a netip.Addr, l cloud.Listed) bool {
	is := t.claiming.known.Object(a)
	if is == nil || l.Instance == "" || t.isServed(l.Instance) {
		return false
	}
	tagged := l.For != "" && (l.Cluster == t.o.Cluster || t.o.Cluster == "")
	bound := is.Status.Interface == l.ID
	return tagged && (bound || t.o.Cluster != "") || l.Primary && bound
}

// isServed tells whether a Node or an object is of the instance.
func (t *term) isServed(instance string) bool {
	for _, n := range t.nodes {
		if n.Instance == instance {
			return true
		}
	}
	for _, m := range t.members {
		if m.node.Instance == instance || m.network != nil && m.servedInstance() == instance {
			return true
		}
	}
	return false
}

// takeLeft takes addresses from ENIs of instances without a Node. It goes on when the cloud shows that to all: an address that is asked for before may count as
// taken yet.
func (t *term) takeLeft(list []claims.Taken) {
	c := t.claiming
	for _, of := range list {
		key := "left " + of.Addr.String()
		if c.flying[key] || c.barred[key].until > t.now().Mono {
			continue
		}
		if t.isServed(of.Instance) { // its Node is there again, and a describe tells
			c.known.NoteLeft(of.Addr, claims.Left{})
			continue
		}
		c.flying[key] = true
		client := t.o.Region.Node(cloud.Instance{ID: of.Instance})
		t.under.Go(func() {
			ctx, cancel := context.WithTimeout(t.ctx, shortJob)
			defer cancel()
			err := client.UnassignAddresses(ctx, of.ENI, []netip.Addr{of.Addr})
			if err == nil {
				t.o.Clock.Sleep(ctx, nil, t.o.Lease.Settle)
			}
			t.post(func(t *term) { t.endLeft(key, of, err) })
		})
	}
}

// endLeft takes in how that has ended.
func (t *term) endLeft(key string, of claims.Taken, err error) {
	c, now := t.claiming, t.now().Mono
	delete(c.flying, key)
	if c.changed = true; !t.isServed(of.Instance) {
		t.o.Region.Forget(of.Instance)
	}
	if err == nil {
		delete(c.barred, key)
		c.known.NoteLeft(of.Addr, claims.Left{})
		return
	}
	pause := min(longestPause, max(apart, 2*c.barred[key].pause))
	c.barred[key] = barred{now + pause, pause}
	t.sayOnce("an address can't be taken from an instance without a Node; it is tried again, and its pod waits", err)
}
