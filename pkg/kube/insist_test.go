package kube

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// undo does each second for that long what another writer of the node does.
func undo(c *cluster, lasting time.Duration, change func(*corev1.Node) bool) {
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		if node := c.theNode(); change(node) {
			c.put(node)
		}
		time.Sleep(time.Second)
	}
}

// untaint takes our taint away, as a controller does that keeps a node's taints.
func untaint(n *corev1.Node) bool {
	before := len(n.Spec.Taints)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == Taint })
	return len(n.Spec.Taints) < before
}

func TestWhatAnotherWriterUndoesEachTimeIsWrittenSeldomAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		var seen journal
		n, _ := start(t, c, Options{Taint: true, Log: logger(&seen, slog.LevelInfo)})
		n.Report(faulty(20))
		synctest.Wait()
		before := c.calls("PATCH")
		undo(c, 3*time.Hour, untaint)
		if got := c.calls("PATCH") - before; got > 50 {
			t.Errorf("%d writes in three hours", got)
		}
		want := `what is written to the Node is undone each time; look for a controller that keeps the node's taints or status, or a webhook that changes them" what=taint times=10`
		if got := seen.String(); strings.Count(got, want) != 1 || strings.Count(got, "\n") != 1 {
			t.Errorf("log:\n%s", got)
		}
		time.Sleep(15 * time.Minute) // the other one has ended
		expectNode(t, c, faultyNode)
		before = c.calls("PATCH")
		undo(c, time.Second, untaint) // what is undone once is put right at once
		expectNode(t, c, faultyNode)
		if got := c.calls("PATCH") - before; got != 1 {
			t.Errorf("%d writes", got)
		}
		n.Report(fit(50))
		expectNode(t, c, fitNode)
	})
}

// A kubelet that restarts fails running pods that ask for more than the node shows.
func TestTheResourceIsWrittenSoonHoweverOftenItIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(fit(50))
		synctest.Wait()
		undo(c, time.Hour, func(n *corev1.Node) bool {
			n.Status.Capacity, n.Status.Allocatable = resourceQuantity(0), resourceQuantity(0)
			return time.Now().Second()%20 == 0
		})
		time.Sleep(pace)
		synctest.Wait()
		if !offersNumber(c.theNode(), 50) {
			t.Errorf("node:\n%s", dump(c.theNode()))
		}
	})
}
