package kube

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
)

// theNetwork returns the object as the server has it, nil if there is none.
func (c *cluster) theNetwork() *crd.NodeNetwork {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := c.objects[networks+"/"+here].(*crd.NodeNetwork)
	return n.DeepCopy()
}

// tell is the operator's write of the status.
func (c *cluster) tell(revision int64) {
	n := c.theNetwork()
	n.Status.Revision, n.Status.Mode = revision, crd.Operator
	c.put(n)
	synctest.Wait()
}

// asked counts the requests about NodeNetworks.
func (c *cluster) asked() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		if strings.Contains(s.path, networks) {
			n++
		}
	}
	return n
}

// newest returns what is known once nothing moves any more.
func newest(o *Object) (order.Object, bool) {
	o.Newest() // it may be the first time
	synctest.Wait()
	return o.Newest()
}

var wants = order.Spec{Mode: order.Operator, Families: []eni.Family{eni.IPv4}, Slots: 16, Boot: "boot"}

// own runs a node of a cluster that has its Node, and returns its object.
func own(t *testing.T, test func(t *testing.T, c *cluster, o *Object)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, _ := start(t, c, Options{})
		synctest.Wait()
		test(t, c, n.Object())
	})
}

func TestNobodyIsAskedForANodeNetworkThatNobodyWants(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		time.Sleep(time.Hour)
		if n := c.asked(); n > 0 {
			t.Errorf("%d requests", n)
		}
		if is, read := newest(o); !read || is.Version != "" {
			t.Errorf("%+v, %v", is, read)
		}
	})
}

func TestANodeNetworkIsMadeForItsNode(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		none, _ := newest(o)
		made, err := o.Write(t.Context(), none, wants, order.Asks{Handover: &order.Handover{Tokens: []string{"token"}}})
		if err != nil {
			t.Fatal(err)
		}
		n := c.theNetwork()
		if len(n.Finalizers) != 1 || n.Finalizers[0] != "enipool.io/enis" || len(n.OwnerReferences) != 1 || n.OwnerReferences[0].Kind != "Node" ||
			n.OwnerReferences[0].Name != here || n.OwnerReferences[0].UID != c.theNode().UID || n.Spec.Slots != 16 || n.Spec.Handover.Tokens[0] != "token" {
			t.Errorf("%+v", n)
		}
		if is, read := newest(o); !read || is.Version != made.Version || is.Spec.Boot != "boot" || is.Generation != 1 {
			t.Errorf("%+v, %v", is, read)
		}
		if _, err := o.Write(t.Context(), none, wants, order.Asks{}); !errors.Is(err, order.ErrConflict) {
			t.Errorf("a second one: %v", err)
		}
	})
}

// Of a write and an acceptance exactly one wins.
func TestAWriteFromAnOlderCopyChangesNothing(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		none, _ := newest(o)
		made, err := o.Write(t.Context(), none, wants, order.Asks{})
		if err != nil {
			t.Fatal(err)
		}
		c.do(func() { c.lagging = true }) // watches tell nothing of it
		c.tell(7)
		next := wants
		next.Slots, next.Release = 32, []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32")}
		if _, err := o.Write(t.Context(), made, next, order.Asks{}); !errors.Is(err, order.ErrConflict) {
			t.Fatalf("%v", err)
		}
		is, _ := o.Newest()
		if is.Status.Revision != 7 || is.Spec.Slots != 16 {
			t.Fatalf("%+v", is)
		}
		if is, err = o.Write(t.Context(), is, next, order.Asks{}); err != nil || is.Spec.Slots != 32 || is.Status.Revision != 7 || is.Generation != 2 {
			t.Errorf("%+v, %v", is, err)
		}
		if n := c.theNetwork(); n.Spec.Release[0] != "10.0.0.9" || n.Status.Revision != 7 {
			t.Errorf("%+v", n)
		}
	})
}

func TestANodeNetworkIsWatched(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		none, _ := newest(o)
		if _, err := o.Write(t.Context(), none, wants, order.Asks{}); err != nil {
			t.Fatal(err)
		}
		<-o.Changed()
		other := c.theNetwork()
		other.Name, other.UID = "another", ""
		c.put(other)
		c.tell(3)
		<-o.Changed()
		if is, _ := newest(o); is.Status.Revision != 3 || is.Status.Mode != order.Operator {
			t.Errorf("%+v", is)
		}
		c.do(c.cut)
		time.Sleep(time.Minute)
		c.tell(4)
		if is, _ := newest(o); is.Status.Revision != 4 {
			t.Errorf("after a watch that was cut: %+v", is)
		}
		c.remove(networks + "/" + here)
		if is, read := newest(o); !read || is.Version != "" {
			t.Errorf("after it was deleted: %+v, %v", is, read)
		}
	})
}

// A replica that lags would show what was before a release (S5).
func TestTheFirstReadIsNotFromACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, _ := start(t, c, Options{})
		c.put(&crd.NodeNetwork{ObjectMeta: newNode().ObjectMeta, Status: crd.NodeNetworkStatus{Revision: 1}})
		synctest.Wait()
		c.do(func() { c.lagging = true })
		c.tell(2)
		if is, read := newest(n.Object()); !read || is.Status.Revision != 2 {
			t.Errorf("%+v, %v", is, read)
		}
	})
}

// The API server may be away at a start, and later. What was known stands.
func TestANodeNetworkIsReadWhenTheServerIsBack(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		c.do(func() { c.down = errors.New("connection refused"); c.cut() })
		if _, read := newest(o); read {
			t.Error("it was read")
		}
		time.Sleep(10 * time.Minute)
		c.do(func() { c.down = nil })
		time.Sleep(time.Minute)
		none, read := newest(o)
		if !read {
			t.Fatal("it is not read")
		}
		if _, err := o.Write(t.Context(), none, wants, order.Asks{}); err != nil {
			t.Fatal(err)
		}
		c.do(func() { c.down = errors.New("connection refused"); c.cut() })
		is, _ := newest(o)
		if _, err := o.Write(t.Context(), is, wants, order.Asks{}); err == nil || errors.Is(err, order.ErrConflict) {
			t.Errorf("a write: %v", err)
		}
		if again, read := newest(o); !read || again.Version != is.Version {
			t.Errorf("%+v, %v", again, read)
		}
	})
}

// The agent judges what to do with a state from before the one that its cache has seen: it has to see it.
func TestAStoreThatWasPutBackCounts(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		none, _ := newest(o)
		if _, err := o.Write(t.Context(), none, wants, order.Asks{}); err != nil {
			t.Fatal(err)
		}
		c.tell(3)
		backup := len(c.history)
		age(c)
		c.tell(9)
		if is, _ := newest(o); is.Status.Revision != 9 || is.PutBack != 0 {
			t.Fatalf("%+v", is)
		}
		c.restore(backup)
		time.Sleep(2 * time.Minute)
		if is, _ := newest(o); is.Status.Revision != 3 || is.PutBack != 1 {
			t.Errorf("%+v", is)
		}
		c.tell(2) // with a later version, as where versions go on above all that there were
		if is, _ := newest(o); is.Status.Revision != 2 || is.PutBack != 2 {
			t.Errorf("%+v", is)
		}
	})
}

// What can't be read is not adopted, not even in part.
func TestANodeNetworkThatCantBeReadIsNotTakenIn(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		none, _ := newest(o)
		if _, err := o.Write(context.Background(), none, wants, order.Asks{}); err != nil {
			t.Fatal(err)
		}
		n := c.theNetwork()
		n.Status.Releasing = []string{"ten"}
		c.put(n)
		time.Sleep(time.Minute)
		if is, read := newest(o); !read || is.Version == "" || is.Status.Releasing != nil {
			t.Errorf("%+v, %v", is, read)
		}
	})
}

// A tool brings the object back from a backup without its owner. With the next write it belongs to its Node again, or nothing would ever delete it. Where
// a policy forbids that the spec is written all the same.
func TestAnObjectOfNobodyIsGivenItsOwnerAgain(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		own(t, func(t *testing.T, c *cluster, o *Object) {
			none, _ := newest(o)
			if _, err := o.Write(t.Context(), none, wants, order.Asks{}); err != nil {
				t.Fatal(err)
			}
			n := c.theNetwork()
			owners := n.OwnerReferences
			n.OwnerReferences = nil
			c.put(n)
			c.do(func() { c.keepsOwners = forbidden })
			is, _ := newest(o)
			more := wants
			more.Slots = 32
			if _, err := o.Write(t.Context(), is, more, order.Asks{}); err != nil {
				t.Fatal(err)
			}
			n = c.theNetwork()
			if forbidden {
				owners = nil
			}
			if n.Spec.Slots != 32 || !slices.Equal(n.OwnerReferences, owners) {
				t.Errorf("forbidden %v: %d slots, owners %v, want %v", forbidden, n.Spec.Slots, n.OwnerReferences, owners)
			}
		})
	}
}
