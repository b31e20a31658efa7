package kube

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// first returns the first copy once nothing moves any more.
func first(o *Object) (version string, read bool) {
	o.First() // it may be the first time
	synctest.Wait()
	is, read := o.First()
	return is.Version, read
}

// A node whose agent calls the cloud itself asks once whether an operator does, and watches nothing.
func TestTheFirstCopyIsReadOnce(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		if version, read := first(o); !read || version != "" {
			t.Errorf("%q, %v", version, read)
		}
		time.Sleep(time.Hour)
		if n := c.asked(); n != 1 {
			t.Errorf("%d requests", n)
		}
		c.put(&crd.NodeNetwork{ObjectMeta: newNode().ObjectMeta, Status: crd.NodeNetworkStatus{Revision: 1}})
		if is, read := newest(o); !read || is.Status.Revision != 1 {
			t.Errorf("who wants the newest gets %+v, %v", is, read)
		}
		c.tell(2)
		if is, _ := newest(o); is.Status.Revision != 2 {
			t.Errorf("it is not watched: %+v", is)
		}
	})
}

// Who asks once more hears of an object that was made since, and watches nothing all the same.
func TestTheFirstCopyIsReadAgain(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		if version, read := first(o); !read || version != "" {
			t.Errorf("%q, %v", version, read)
		}
		c.put(&crd.NodeNetwork{ObjectMeta: newNode().ObjectMeta, Status: crd.NodeNetworkStatus{Revision: 1}})
		time.Sleep(time.Hour)
		if version, _ := first(o); version != "" || c.asked() != 1 {
			t.Errorf("%q after %d requests", version, c.asked())
		}
		o.ReadAgain()
		o.ReadAgain()
		time.Sleep(time.Hour)
		if version, _ := first(o); version == "" || c.asked() > 3 {
			t.Errorf("%q after %d requests", version, c.asked())
		}
	})
}

// Where the kinds are not installed there is no operator, whether or not the agent may read them. Where they are, an agent that may not does
// not know.
func TestWithoutTheKindsThereIsNoObject(t *testing.T) {
	for name, tt := range map[string]struct {
		kindless, forbidden, read bool
	}{
		"no kinds": {true, false, true}, "no kinds and no right": {true, true, true}, "no right": {false, true, false},
	} {
		own(t, func(t *testing.T, c *cluster, o *Object) {
			c.do(func() {
				if c.kindless = tt.kindless; tt.forbidden {
					c.forbid = "GET " + networks
				}
			})
			if version, read := first(o); read != tt.read || version != "" {
				t.Errorf("%s: %q, %v", name, version, read)
			}
			if err := o.Wrong(); (err == nil) != tt.read {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// Who needs the object where the kinds are not installed is told to install them.
func TestWithoutTheKindsPeopleAreToldToInstallThem(t *testing.T) {
	own(t, func(t *testing.T, c *cluster, o *Object) {
		c.do(func() { c.kindless = true })
		if _, read := newest(o); read || o.Wrong() == nil || !strings.Contains(o.Wrong().Error(), "kubectl apply --server-side --kustomize conf/kubernetes/crds") {
			t.Errorf("read %t: %v", read, o.Wrong())
		}
		c.do(func() { c.kindless = false })
		time.Sleep(time.Minute)
		if _, read := newest(o); !read || o.Wrong() != nil {
			t.Errorf("once they are there: read %t, %v", read, o.Wrong())
		}
	})
}

// People read once why the object can't be read, and that it can be again.
func TestWhatKeepsAnObjectFromBeingReadIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		said := &journal{}
		n, _ := start(t, c, Options{Log: logger(said, slog.LevelInfo)})
		synctest.Wait()
		o := n.Object()
		for port := range 3 {
			c.do(func() {
				c.down = errors.New("read tcp 10.0.0.1:" + strings.Repeat("7", 3+port) + ": connection refused")
			})
			_, _ = first(o)
			time.Sleep(10 * time.Minute)
		}
		if err := o.Wrong(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%v", err)
		}
		if n := strings.Count(said.String(), "NodeNetwork can't be read"); n != 1 || !strings.Contains(said.String(), "level=WARN msg=\"the node's NodeNetwork can't be read") {
			t.Errorf("told %d times:\n%s", n, said)
		}
		c.do(func() { c.down = nil })
		time.Sleep(10 * time.Minute)
		if _, read := first(o); !read || o.Wrong() != nil {
			t.Errorf("%v, %v", read, o.Wrong())
		}
		c.put(&crd.NodeNetwork{ObjectMeta: newNode().ObjectMeta, Status: crd.NodeNetworkStatus{Releasing: []string{"ten"}}})
		if _, read := newest(o); !read || o.Wrong() == nil || strings.Count(said.String(), "NodeNetwork can't be read") != 2 {
			t.Errorf("what is no address: %v\n%s", o.Wrong(), said)
		}
	})
}
