package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
)

func fit(capacity int) health.Report {
	return health.Report{Reason: "AddressesAvailable", Message: "no pod waits longer than 2m0s for an address", Capacity: capacity}
}

func faulty(capacity int) health.Report {
	return health.Report{Faulty: true, Reason: "SubnetExhausted", Message: "3 pods have no address", Taint: true, Capacity: capacity}
}

// dump is all of a node that may matter here, a line each.
func dump(n *corev1.Node) string {
	var b strings.Builder
	slices.SortFunc(n.Status.Conditions, func(a, b corev1.NodeCondition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range n.Status.Conditions {
		fmt.Fprintf(&b, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, t := range n.Spec.Taints {
		fmt.Fprintf(&b, "taint %s\n", t.ToString())
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourcePods, Resource} {
		capacity, there := n.Status.Capacity[name]
		allocatable, too := n.Status.Allocatable[name]
		if there || too {
			fmt.Fprintf(&b, "%s %s of %s\n", name, &allocatable, &capacity)
		}
	}
	return b.String()
}

// expectNode waits until nothing moves any more and compares the node.
func expectNode(t *testing.T, c *cluster, want string) {
	t.Helper()
	synctest.Wait()
	if diff := gocmp.Diff(strings.TrimPrefix(want, "\n"), dump(c.theNode())); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
}

func expectEvents(t *testing.T, c *cluster, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := gocmp.Diff(want, c.told()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// expectLast compares what was patched last.
func expectLast(t *testing.T, c *cluster, want ...string) {
	t.Helper()
	var got []string
	c.do(func() {
		for _, s := range c.seen {
			if s.method == "PATCH" {
				got = append(got, kindOf(s.path))
			}
		}
	})
	if diff := gocmp.Diff(want, got[max(0, len(got)-len(want)):]); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

const fitNode = `
EnipoolAddressesUnavailable=False AddressesAvailable: no pod waits longer than 2m0s for an address
Ready=True KubeletReady: 
taint dedicated=x:NoExecute
cpu 4 of 4
pods 110 of 110
enipool.io/pod-addresses 50 of 50
`

const faultyNode = `
EnipoolAddressesUnavailable=True SubnetExhausted: 3 pods have no address
Ready=True KubeletReady: 
taint dedicated=x:NoExecute
taint enipool.io/addresses-unavailable:NoSchedule
cpu 4 of 4
pods 110 of 110
enipool.io/pod-addresses 20 of 20
`

func TestAFaultIsToldAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(fit(50))
		expectNode(t, c, fitNode)
		began := conditionOf(c.theNode()).LastTransitionTime
		expectEvents(t, c)
		time.Sleep(time.Minute)

		n.Report(faulty(20))
		expectNode(t, c, faultyNode)
		expectLast(t, c, "nodes", "nodes/status") // taint, then room
		if at := conditionOf(c.theNode()).LastTransitionTime; !at.Equal(&metav1.Time{Time: began.Add(time.Minute)}) {
			t.Errorf("the transition was at %s, %s after the first", at, at.Sub(began.Time))
		}
		time.Sleep(90 * time.Second)

		n.Report(fit(50))
		expectNode(t, c, fitNode)
		expectLast(t, c, "nodes/status", "nodes")
		expectEvents(t, c,
			"Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address",
			"Normal Node /node-1(uid-1) AddressesAvailable: no pod waits longer than 2m0s for an address; SubnetExhausted lasted 1m30s")
	})
}

func TestAnotherReasonIsAnotherEventAndAnotherMessageIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(faulty(50))
		synctest.Wait()
		since := conditionOf(c.theNode()).LastTransitionTime
		time.Sleep(time.Minute)
		r := faulty(50)
		r.Message = "4 pods have no address"
		n.Report(r)
		synctest.Wait()
		if is := conditionOf(c.theNode()); is.Message != r.Message || !is.LastTransitionTime.Equal(&since) {
			t.Errorf("condition %+v", is)
		}
		r.Reason = "CloudForbidden"
		n.Report(r)
		synctest.Wait()
		is := conditionOf(c.theNode())
		if is.Reason != "CloudForbidden" || is.Message != "4 pods have no address" || !is.LastTransitionTime.Equal(&since) {
			t.Errorf("condition %+v", is)
		}
		expectEvents(t, c,
			"Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address",
			"Warning Node /node-1(uid-1) CloudForbidden: 4 pods have no address")
	})
}

func TestNothingIsWrittenWhenNothingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		node := newNode()
		c.put(node)
		n, _ := start(t, c, Options{Taint: true})
		n.Report(faulty(20))
		synctest.Wait()
		began := c.calls("PATCH")
		if began > 3 { // condition, capacity, taint; the first two in one if the pods are known
			t.Errorf("%d patches, want 2 or 3", began)
		}
		for i := range 100 {
			n.Report(faulty(20))
			c.put(pod(fmt.Sprint("p", i%5), "other"))
			kubelet := c.theNode()
			for i := range kubelet.Status.Conditions {
				kubelet.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now())
			}
			c.put(kubelet)
			time.Sleep(time.Second)
		}
		if got := c.calls("PATCH") - began; got != 0 {
			t.Errorf("%d patches for nothing", got)
		}
		expectEvents(t, c, "Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address")
	})
}

func TestAWatchThatLagsLeadsToNoSecondWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(fit(50))
		synctest.Wait()
		c.do(func() { c.lagging = true })
		before := c.calls("PATCH")
		n.Report(faulty(20))
		time.Sleep(10 * time.Second)
		c.do(func() { c.show(c.served + 1) }) // not all of it
		time.Sleep(10 * time.Second)
		if got := c.calls("PATCH") - before; got != 2 {
			t.Errorf("%d patches, want 2", got)
		}
		c.do(func() { c.lagging = false; c.show(len(c.history)) })
		expectNode(t, c, faultyNode)
		n.Report(fit(50))
		expectNode(t, c, fitNode)
	})
}

func TestWhatOthersTakeAwayComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(faulty(20))
		expectNode(t, c, faultyNode)
		time.Sleep(time.Minute)

		node := c.theNode() // a kubelet that begins anew
		node.Status.Capacity[Resource] = resource.MustParse("0")
		node.Status.Allocatable[Resource] = resource.MustParse("0")
		c.put(node)
		expectNode(t, c, faultyNode)
		node = c.theNode()
		node.Status.Allocatable[Resource] = resource.MustParse("0")
		c.put(node)
		time.Sleep(pace)
		expectNode(t, c, faultyNode)

		node = c.theNode()
		node.Spec.Taints = node.Spec.Taints[:1]
		node.Status.Conditions = newNode().Status.Conditions
		c.put(node)
		expectNode(t, c, faultyNode)

		c.remove("nodes/" + here)
		synctest.Wait()
		again := newNode()
		again.UID = "uid-again"
		c.put(again)
		time.Sleep(pace)
		expectNode(t, c, faultyNode)
		expectEvents(t, c,
			"Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address x2",
			"Warning Node /node-1(uid-again) SubnetExhausted: 3 pods have no address")
	})
}

func TestAQuarrelWithAnotherWriterIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(faulty(20))
		synctest.Wait()
		for range 600 { // another controller takes the taint away at once, each time
			node := c.theNode()
			node.Spec.Taints = nil
			c.put(node)
			time.Sleep(100 * time.Millisecond)
		}
		if got := c.calls("PATCH"); got < 10 || got > 20 {
			t.Errorf("%d patches in a minute", got)
		}
		n.Report(fit(50)) // which is another matter
		expectNode(t, c, strings.ReplaceAll(fitNode, "taint dedicated=x:NoExecute\n", ""))
	})
}

func TestTaintsOfOthersStayWhoeverIsFaster(t *testing.T) {
	cordon := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
	for _, tt := range []struct {
		name          string
		before, after []corev1.Taint // what another writer has there, and makes of it while we write
		want          bool           // our taint
	}{
		{"the first of all", nil, []corev1.Taint{cordon}, true},
		{"added before ours", []corev1.Taint{cordon}, []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoExecute}, cordon}, true},
		{"removed before ours", []corev1.Taint{cordon}, nil, true},
		{"ours by another hand", nil, []corev1.Taint{ourTaint}, true},
		{"moved while ours goes", []corev1.Taint{ourTaint, cordon}, []corev1.Taint{cordon, ourTaint}, false},
		{"ours was taken away already", []corev1.Taint{ourTaint, cordon}, []corev1.Taint{cordon}, false},
		{"all were taken away", []corev1.Taint{ourTaint}, nil, false},
		{"of our key with another effect", []corev1.Taint{{Key: Taint, Effect: corev1.TaintEffectNoExecute}}, []corev1.Taint{{Key: Taint, Effect: corev1.TaintEffectNoExecute}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				node := newNode()
				node.Spec.Taints = tt.before
				c.put(node)
				c.onPatch = func(what string) {
					if what != "nodes/"+here+"/" {
						return
					}
					c.onPatch = nil
					node := c.objects["nodes/"+here].DeepCopyObject().(*corev1.Node)
					node.Spec.Taints = tt.after
					c.store("nodes/"+here, node)
				}
				n, _ := start(t, c, Options{Taint: true})
				r := fit(1)
				if tt.want {
					r = faulty(1)
				}
				n.Report(r)
				time.Sleep(time.Minute)
				want, got := map[string]int{}, map[string]int{}
				for _, taint := range tt.after {
					want[taint.ToString()] = 1
				}
				delete(want, ourTaint.ToString())
				if tt.want {
					want[ourTaint.ToString()] = 1
				}
				for _, taint := range c.theNode().Spec.Taints {
					got[taint.ToString()]++
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("taints (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWithoutLeaveToTaintATaintIsRemovedAndNoneAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		node := newNode()
		node.Spec.Taints = append(node.Spec.Taints, ourTaint)
		c.put(node)
		n, _ := start(t, c, Options{})
		n.Report(faulty(20))
		expectNode(t, c, strings.ReplaceAll(faultyNode, "taint enipool.io/addresses-unavailable:NoSchedule\n", ""))
	})
}

func TestTheNextAgentTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, stop := start(t, c, Options{Taint: true})
		n.Report(faulty(20))
		synctest.Wait()
		stop()
		expectNode(t, c, faultyNode)
		before := c.calls("PATCH")

		n, stop = start(t, c, Options{Taint: true})
		expectNode(t, c, faultyNode) // it says nothing before it knows
		n.Report(faulty(20))
		synctest.Wait()
		stop()
		if got := c.calls("PATCH") - before; got != 0 {
			t.Errorf("%d patches for what is there already", got)
		}

		n, _ = start(t, c, Options{Taint: true})
		time.Sleep(time.Minute)
		n.Report(fit(50))
		expectNode(t, c, fitNode)
		expectEvents(t, c,
			"Warning Node /node-1(uid-1) SubnetExhausted: 3 pods have no address",
			"Normal Node /node-1(uid-1) AddressesAvailable: no pod waits longer than 2m0s for an address; SubnetExhausted lasted 1m0s")
	})
}

func TestAReportWaitsForTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{Taint: true})
		n.Report(fit(50))
		synctest.Wait()
		c.do(func() { c.down = refusedError(); c.cut() })
		began := time.Now()
		for i := range 50 {
			n.Report(faulty(i))
			n.Warn(eni.Pod{UID: "u", Namespace: "ns", Name: "p"}, "NoAddress", "x")
		}
		n.Report(faulty(20))
		if took := time.Since(began); took != 0 {
			t.Errorf("reports took %s", took)
		}
		time.Sleep(20 * time.Minute)
		c.do(func() { c.down = nil })
		time.Sleep(2 * time.Minute)
		expectNode(t, c, faultyNode)
	})
}

func TestTheSchedulersSumComesOutRight(t *testing.T) {
	for _, tt := range []struct {
		name           string
		capacity       int
		asked, silent  int
		inHostsNetwork int
		want           string
	}{
		{"an empty node", 50, 0, 0, 0, "50"},
		{"pods that ask are taken off by the scheduler", 50, 30, 0, 0, "50"},
		{"pods that did not ask are taken off here", 50, 10, 15, 0, "35"},
		{"pods in the host's network need none", 50, 0, 0, 20, "50"},
		{"nothing is left", 0, 0, 0, 0, "0"},
		{"never less than what running pods asked for", 10, 12, 3, 0, "12"},
		{"never less than nothing", 5, 0, 9, 0, "0"},
		{"what is not known is not written", -1, 3, 3, 0, "none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.put(newNode())
				for i := range tt.asked {
					p := pod(fmt.Sprint("asked", i), here)
					p.Spec.Containers = []corev1.Container{{Name: "x", Resources: corev1.ResourceRequirements{Requests: resourceQuantity(1)}}}
					c.put(p)
				}
				for i := range tt.silent {
					c.put(pod(fmt.Sprint("silent", i), here))
				}
				for i := range tt.inHostsNetwork {
					p := pod(fmt.Sprint("host", i), here)
					p.Spec.HostNetwork = true
					c.put(p)
				}
				n, _ := start(t, c, Options{})
				n.Report(fit(tt.capacity))
				time.Sleep(time.Minute)
				got := "none"
				if q, ok := c.theNode().Status.Allocatable[Resource]; ok {
					got = q.String()
				}
				if got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}

func TestManyPodsWithoutARequestAreFewWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := startOnNode(t, Options{})
		n.Report(fit(100))
		synctest.Wait()
		for i := range 60 {
			c.put(pod(fmt.Sprint("p", i), here))
			time.Sleep(250 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if q := c.theNode().Status.Allocatable[Resource]; q.Value() != 40 {
			t.Errorf("%s, want 40", &q)
		}
		if got := c.calls("PATCH"); got > 8 {
			t.Errorf("%d patches for 60 pods in 15 seconds", got)
		}
	})
}

func TestAFullNodeIsNotWrittenBeforeItsPodsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		c.forbid = "GET pods"
		n, _ := start(t, c, Options{})
		n.Report(fit(10))
		time.Sleep(time.Minute)
		if _, there := c.theNode().Status.Capacity[Resource]; there || conditionOf(c.theNode()).Status != corev1.ConditionFalse {
			t.Errorf("node:\n%s", dump(c.theNode()))
		}
		c.do(func() { c.forbid = "" })
		time.Sleep(2 * time.Minute)
		if q := c.theNode().Status.Capacity[Resource]; q.Value() != 10 {
			t.Errorf("node:\n%s", dump(c.theNode()))
		}
	})
}

// The condition of an earlier agent may be of a time that the clock has not reached,
// or has left long ago.
func TestAClockThatWasSetNeitherHoldsAReportUpNorMakesItLastForLessThanNothing(t *testing.T) {
	for set, lasted := range map[time.Duration]string{-3 * time.Hour: "0s", 0: "10m0s", 3 * time.Hour: "3h10m0s"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster()
			node := newNode()
			node.Status.Conditions = append(node.Status.Conditions, conditionFor(faulty(20), corev1.NodeCondition{}, metav1.NewTime(time.Now().Add(-set))))
			c.put(node)
			n, _ := start(t, c, Options{Taint: true})
			time.Sleep(10 * time.Minute)
			n.Report(fit(50))
			expectNode(t, c, fitNode)
			expectEvents(t, c, "Normal Node /node-1(uid-1) AddressesAvailable: no pod waits longer than 2m0s for an address; SubnetExhausted lasted "+lasted)
			if is := conditionOf(c.theNode()); !is.LastTransitionTime.Time.Equal(time.Now()) {
				t.Errorf("the condition turned at %s, now is %s", is.LastTransitionTime, time.Now())
			}
		})
	}
}
