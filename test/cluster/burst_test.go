package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/status"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node has one pod and 16 addresses when burstPods come at once. With them it wants 48, by
// the equation: batches of 16, half a batch free.
const (
	burstPods  = 35
	idlePool   = 16
	burstsPool = 48
)

// burst is what became of pods that were bound to a node at once. Times are from when the
// first of them was bound.
type burst struct {
	complete time.Duration   // until the agent had all addresses
	waited   []time.Duration // of the ADDs that found none
	ready    []time.Duration // each pod from its own bound to Ready, sorted
}

// measure runs a burst on the contender's node and removes it again. Nothing but a watch and
// reading two files of the node looks at it meanwhile.
func (c *cluster) measure(k *contender, round int) (b burst) {
	c.t.Helper()
	log := k.n.Path("/var/log/enipool.log")
	var before []time.Duration
	if !k.ptp {
		c.Eventually(k.name+": its node is idle", k.n.isIdle)
		before = c.waits(log)
	}
	name := fmt.Sprint("burst-", round)
	c.bind(k.n, name, burstPods)
	var complete time.Time
	c.Eventually(k.name+": all pods are ready", func() error {
		if complete.IsZero() && !k.ptp && k.n.has(burstsPool) == nil {
			complete = time.Now()
		}
		if err := c.allReady(name, burstPods); err != nil || k.ptp || !complete.IsZero() {
			return err
		}
		return errors.New("the pool is not complete")
	}, c.warnings)
	pods := c.called(name)
	began := slices.MinFunc(pods, func(a, b sighting) int { return a.bound.Compare(b.bound) }).bound
	for _, p := range pods {
		b.ready = append(b.ready, p.ready.Sub(p.bound))
	}
	slices.Sort(b.ready)
	if !k.ptp {
		b.complete, b.waited = complete.Sub(began), c.waits(log)[len(before):]
	}
	c.must(c.api.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=" + name}))
	c.Eventually("no pod of the burst is left", func() error {
		if left := len(c.called(name)); left > 0 {
			return fmt.Errorf("%d are", left)
		}
		return nil
	})
	return b
}

// bind makes so many pods that are bound to the node from their beginning. They ask the scheduler
// for nothing: those of all contenders are the same.
func (c *cluster) bind(n *node, name string, pods int) {
	c.t.Helper()
	no, grace := false, int64(1)
	var g errgroup.Group
	for i := range pods {
		g.Go(func() error {
			_, err := c.api.CoreV1().Pods(metav1.NamespaceDefault).Create(context.Background(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", n.Name, name, i), Labels: map[string]string{"app": name, "enipool.io/pod-addresses": "none"}},
				Spec: corev1.PodSpec{NodeName: n.Name, AutomountServiceAccountToken: &no, EnableServiceLinks: &no, TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{Name: "web", Image: "localhost/busybox:1", Command: []string{"httpd", "-f", "-p", "80", "-h", "/etc"}}}},
			}, metav1.CreateOptions{})
			return err
		})
	}
	c.must(g.Wait())
}

// called returns the pods of a burst.
func (c *cluster) called(name string) []sighting {
	return slices.DeleteFunc(c.pods.now(), func(p sighting) bool { return p.Labels["app"] != name })
}

func (c *cluster) allReady(name string, want int) error {
	ready := 0
	for _, p := range c.called(name) {
		if isReady(p.Pod) {
			ready++
		}
	}
	if ready != want {
		return fmt.Errorf("%d of %d pods are ready", ready, want)
	}
	return nil
}

// page is what the node's agent wrote of itself last.
func (n *node) page() (status.Status, error) {
	return status.Beside(n.Path("/run/enipool/node.cache")).Read()
}

// has returns nil once the agent has so many addresses.
func (n *node) has(addresses int) error {
	s, err := n.page()
	if err == nil && s.Addresses.Attached < addresses {
		err = fmt.Errorf("it has %d addresses", s.Addresses.Attached)
	}
	return err
}

// isIdle returns nil once the pool is that of a node with one pod.
func (n *node) isIdle() error {
	s, err := n.page()
	if err == nil && (s.Addresses.Used != 1 || s.Addresses.Attached != idlePool || len(s.InFlight) > 0) {
		err = fmt.Errorf("%+v, under way: %q", s.Addresses, s.InFlight)
	}
	return err
}

var waitLine = regexp.MustCompile(`(?m)msg="waited for an address".* waited=(\S+) outcome=served`)

// waits returns how long ADDs waited that found no address, by the plugin's log.
func (c *cluster) waits(log string) (all []time.Duration) {
	c.t.Helper()
	text, err := os.ReadFile(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	c.must(err)
	for _, found := range waitLine.FindAllStringSubmatch(string(text), -1) {
		d, err := time.ParseDuration(strings.Trim(found[1], `"`))
		c.must(err)
		all = append(all, d)
	}
	return all
}
