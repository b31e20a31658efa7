package kube

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/eni"
)

// happening is one thing that happens to the cluster: to one of a few pods, or to
// what lies between it and us.
type happening struct {
	What string
	Pod  int
	N    int
}

// happenings are drawn by how often they come up here.
var happenings = []string{
	"create", "create", "create", "create", "bind", "bind", "run", "succeed", "fail", "terminate", "delete", "delete", "again", "gap", "gap",
	"cut", "cut", "compact", "down", "up", "up", "overload", "lag", "follow", "follow", "garbage", "twice", "swapped", "wait", "wait", "wait",
}

func drawHistory(t *rapid.T) []happening {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) happening {
		return happening{rapid.SampledFrom(happenings).Draw(t, "what"), rapid.IntRange(0, 5).Draw(t, "pod"), rapid.IntRange(0, 60).Draw(t, "n")}
	}), 1, 60).Draw(t, "history")
}

// happen lets it happen.
func (c *cluster) happen(h happening) {
	name := fmt.Sprintf("p%d", h.Pod)
	at := "pods/default/" + name
	c.mu.Lock()
	p, there := c.objects[at].(*corev1.Pod)
	c.mu.Unlock()
	change := func(do func(*corev1.Pod)) {
		if there {
			p = p.DeepCopy()
			do(p)
			c.put(p)
		}
	}
	create := func() {
		p := pod(name, []string{here, here, "other", ""}[h.N%4])
		p.Spec.HostNetwork = h.N%7 == 0
		c.put(p)
	}
	switch h.What {
	case "create":
		if !there {
			create()
		}
	case "gap": // nobody sees it happen
		c.do(func() { c.disturb(happening{What: "compact"}) })
		fallthrough
	case "again":
		c.remove(at)
		create()
		if h.What == "gap" {
			c.do(func() { c.disturb(happening{What: "compact"}) })
		}
	case "delete":
		c.remove(at)
	case "bind":
		change(func(p *corev1.Pod) {
			if p.Spec.NodeName == "" {
				p.Spec.NodeName = here
			}
		})
	case "run":
		change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	case "succeed":
		change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	case "fail":
		change(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
	case "terminate":
		change(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	case "wait":
		time.Sleep(time.Duration(h.N) * time.Second)
	default:
		c.do(func() { c.disturb(h) })
	}
}

// disturb changes what lies between the cluster and us.
func (c *cluster) disturb(h happening) {
	switch h.What {
	case "cut":
		c.cut()
	case "compact":
		c.floor = len(c.history)
		c.cut()
	case "down":
		c.down = []error{refusedError(), errors.New("no route to host")}[h.N%2]
		c.cut()
	case "up":
		c.down, c.status = nil, 0
	case "overload":
		c.status = []int{429, 500, 503, 504, 403, 401}[h.N%6]
		c.cut()
	case "lag": // another replica answers from now on, which is behind
		c.lagging = true
		c.served = max(c.floor, c.served-h.N%3)
		c.cut()
	case "follow":
		c.show(min(len(c.history), c.served+h.N%5))
	case "garbage":
		c.garbage = true
	case "twice":
		c.twice = !c.twice
	case "swapped":
		c.swapped = !c.swapped
	}
}

// truth returns the pods that need an address after the first n changes.
func (c *cluster) truth(n int) []eni.Pod {
	var list []any
	for _, o := range c.at(n, "pods", func(client.Object) bool { return true }) {
		list = append(list, o)
	}
	return sumLoad(list, here).pods
}

// check lets a history happen, and compares what is known with what was true at some
// time, which never goes back, and in the end with what is true.
func check(t *testing.T, history []happening) (wrong error) {
	c := newCluster()
	n, stop := start(t, c, Options{})
	defer stop()
	seen, once := 0, false
	look := func() error {
		synctest.Wait()
		list, known := n.Pods()
		if once && !known {
			return errors.New("the pods are not known any more")
		}
		once = known
		c.mu.Lock()
		defer c.mu.Unlock()
		for was := seen; known && !cmp.Equal(list, c.truth(seen)); seen++ {
			if seen == len(c.history) {
				return fmt.Errorf("%v was never true after change %d", list, was)
			}
		}
		return nil
	}
	for i, h := range history {
		c.happen(h)
		if err := look(); err != nil {
			return fmt.Errorf("after %d %+v: %w", i, h, err)
		}
	}
	c.do(func() {
		c.down, c.status, c.garbage, c.lagging, c.swapped = nil, 0, false, false, false
		c.show(len(c.history))
	})
	time.Sleep(3 * time.Minute)
	if err := look(); err != nil {
		return err
	}
	list, known := n.Pods()
	if !known {
		return errors.New("not known in the end")
	}
	if diff := cmp.Diff(c.truth(len(c.history)), list); diff != "" {
		return fmt.Errorf("in the end (-true +known):\n%s", diff)
	}
	return nil
}

func TestAfterAnyHistoryThePodsAreTheTruth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		history := drawHistory(r)
		var wrong error
		synctest.Test(t, func(t *testing.T) { wrong = check(t, history) })
		if wrong != nil {
			r.Fatal(wrong)
		}
	})
}
