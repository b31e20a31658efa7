package kube

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restore brings the cluster back to what it was after so many changes, as from a backup.
func (c *cluster) restore(to int) {
	c.do(func() {
		c.history, c.objects = c.history[:to], map[string]client.Object{}
		for _, h := range c.history {
			if c.objects[h.path] = h.to; h.to == nil {
				delete(c.objects, h.path)
			}
		}
		c.cut()
		c.show(to)
	})
}

// age lets the cluster change so often that no few writes bring it there again.
func age(c *cluster) {
	for i := range 200 {
		c.put(pod(fmt.Sprint("other-", i), "other"))
	}
}

// A taint that came with the backup would keep pods off until the cluster has changed as often again as
// it had when the backup was made.
func TestAClusterThatIsRestoredFromABackupIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		c.put(pod("before", here))
		n, _ := start(t, c, Options{Taint: true})
		n.Report(faulty(21))
		expectNode(t, c, faultyNode)
		backup := len(c.history)
		age(c)
		c.put(pod("after", here))
		n.Report(fit(52))
		time.Sleep(time.Minute)
		c.restore(backup)
		time.Sleep(2 * time.Minute)
		expect(t, n, "before")
		expectNode(t, c, fitNode)
	})
}

func TestANodeThatIsYoungerThanTheBackupIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		backup := len(c.history)
		age(c)
		c.put(newNode())
		n, _ := start(t, c, Options{Taint: true})
		n.Report(faulty(20))
		expectNode(t, c, faultyNode)
		c.restore(backup)
		time.Sleep(2 * time.Minute)
		c.put(newNode()) // its kubelet registers it again
		time.Sleep(time.Minute)
		expectNode(t, c, faultyNode)
	})
}
