package kube

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var serves = Network{Ready: true, Reason: "PodsCanStart", Message: "pods can start"}

// What an agent tells of the network it writes once. One that follows on it changes nothing before it says so itself, and a fault of
// the node does not either.
func TestTheNetworkIsToldWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, stop := start(t, c, Options{Taint: true})
		is := func(want corev1.ConditionStatus, since time.Time) time.Time {
			t.Helper()
			synctest.Wait()
			got := findCondition(c.theNode(), NetworkReady)
			if got.Status != want || !since.IsZero() && !got.LastTransitionTime.Time.Equal(since) {
				t.Errorf("%+v, want %s since %s", got, want, since)
			}
			return got.LastTransitionTime.Time
		}
		n.Report(fit(50))
		is("", time.Time{})
		n.ReportNetwork(serves)
		began := is(corev1.ConditionTrue, time.Time{})
		before := c.calls("PATCH")
		for range 100 {
			time.Sleep(time.Minute)
			n.ReportNetwork(serves)
		}
		is(corev1.ConditionTrue, began)
		stop()
		n, stop = start(t, c, Options{Taint: true})
		defer func() { stop() }()
		n.Report(fit(50))
		time.Sleep(time.Hour)
		is(corev1.ConditionTrue, began)
		if got := c.calls("PATCH") - before; got > 0 {
			t.Errorf("%d writes without news", got)
		}
		n.Report(faulty(20))
		is(corev1.ConditionTrue, began)
		n.Withhold(true) // the fault alone goes
		is(corev1.ConditionTrue, began)
		n.Withhold(false)
		n.ReportNetwork(Network{Reason: "NoAddress", Message: "there is none"})
		is(corev1.ConditionFalse, time.Now())
	})
}

// Karpenter takes a node for complete once it has seen more than 0 of what pods ask for.
func TestANewNodeThatHasAnAddressShowsOne(t *testing.T) {
	now := time.Now()
	aged := func(age time.Duration) *corev1.Node {
		n := newNode()
		n.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return n
	}
	for _, tt := range []struct {
		name                    string
		age                     time.Duration
		capacity, silent, asked int
		want                    int
		again                   time.Duration
	}{
		{"no address yet", time.Minute, 0, 1, 0, 0, 0},
		{"the first one, which a pod has that did not ask", time.Minute, 1, 1, 0, 1, 59 * time.Minute},
		{"more", time.Minute, 3, 1, 1, 2, 0},
		{"an hour later the truth counts", time.Hour, 1, 1, 0, 0, 0},
	} {
		n, again := newRoom().numberToShow(now, tt.capacity, load{silent: tt.silent, asked: tt.asked}, aged(tt.age))
		if n != tt.want || again != tt.again {
			t.Errorf("%s: %d, again in %s", tt.name, n, again)
		}
	}
}

func TestWhetherTheNodeOffersAddressesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{})
		synctest.Wait()
		for len(n.Changed()) > 0 {
			<-n.Changed()
		}
		n.Report(fit(0))
		if synctest.Wait(); n.Offers() {
			t.Error("none is an offer")
		}
		n.Report(fit(5))
		if synctest.Wait(); !n.Offers() || len(n.Changed()) != 1 {
			t.Errorf("%v, %d", n.Offers(), len(n.Changed()))
		}
		gone := c.theNode().DeepCopy()
		gone.Status.Allocatable[Resource] = resource.MustParse("0")
		c.put(gone) // by a kubelet that starts; it is put back
		if synctest.Wait(); !n.Offers() {
			t.Error("it stays away")
		}
	})
}
