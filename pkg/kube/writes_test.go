package kube

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// asking returns a pod that asks the scheduler for an address.
func asking(name string) *corev1.Pod {
	p := pod(name, here)
	p.Spec.Containers = []corev1.Container{{Name: "x", Resources: corev1.ResourceRequirements{Requests: resourceQuantity(1)}}}
	return p
}

// churn returns what begins or ends one of a node's pods, which one is random.
func churn(c *cluster, r *rand.Rand, pods int, makePod func(i int) *corev1.Pod) func() {
	names := make([]string, pods)
	next := 0
	begin := func(i int) {
		p := makePod(i)
		if askedBy(p) > 0 && !fits(c) {
			return
		}
		p.Name = fmt.Sprint(p.Name, "-", next)
		next++
		c.put(p)
		names[i] = "pods/default/" + p.Name
	}
	return func() {
		i := r.IntN(pods)
		if names[i] == "" {
			begin(i)
			return
		}
		c.remove(names[i])
		names[i] = ""
	}
}

// fits reports whether the scheduler would bind another pod that asks, by what the node shows.
func fits(c *cluster) bool {
	asked := 0
	c.do(func() {
		for _, o := range c.objects {
			if p, is := o.(*corev1.Pod); is {
				asked += askedBy(p)
			}
		}
	})
	room, is := c.theNode().Status.Allocatable[Resource]
	return !is || asked < int(room.Value())
}

// Each write to a node goes to all who watch nodes: 5,000 nodes with one write in five
// seconds are a thousand a second.
func TestPatchesOfAnHour(t *testing.T) {
	const pods = 250
	mixed := func(asks int) func(int) *corev1.Pod {
		return func(i int) *corev1.Pod {
			if i < asks {
				return asking("asks")
			}
			return pod("silent", here)
		}
	}
	for _, tt := range []struct {
		name     string
		capacity int
		make     func(i int) *corev1.Pod
		most     int // patches in the hour
	}{
		{"nobody asks", 300, mixed(0), 9},
		{"nobody asks, and the node is small", 130, mixed(0), 9},
		{"all ask", 300, mixed(pods), 0},
		{"some ask", 300, mixed(pods / 2), 12},
		{"a few do not ask, and there is little room", 130, mixed(pods - 10), 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				c.put(newNode())
				step := churn(c, rand.New(rand.NewPCG(1, 2)), pods, tt.make)
				for range 1000 {
					step()
				}
				n, _ := start(t, c, Options{Taint: true})
				n.Report(fit(tt.capacity))
				time.Sleep(time.Minute)
				before, overbooked := c.calls("PATCH"), 0
				for range 1800 {
					step()
					n.Report(fit(tt.capacity))
					time.Sleep(2 * time.Second)
					synctest.Wait()
					q := c.theNode().Status.Allocatable[Resource]
					if l, _ := n.view.currentLoad(); l.asked > 0 && q.Value() > int64(publishedNumber(tt.capacity, l.silent, l.asked)) {
						overbooked++
					}
				}
				if overbooked > 10 { // the pace of writes allows it for a moment
					t.Errorf("too much room shown for %d of 1,800 pods", overbooked)
				}
				got := c.calls("PATCH") - before
				t.Logf("%d patches", got)
				if got > tt.most {
					t.Errorf("%d patches in an hour, want %d at most", got, tt.most)
				}
				time.Sleep(2*outgrown + hidden)
				load, _ := n.view.currentLoad()
				if want := publishedNumber(tt.capacity, load.silent, load.asked); !offersNumber(c.theNode(), want) {
					t.Errorf("when all is quiet: %s, want %d", dump(c.theNode()), want)
				}
			})
		})
	}
}

// The kubelet writes its own part of the node all the time.
func TestAnIdleNodeIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		for i := range 20 {
			c.put(pod(fmt.Sprint("silent", i), here))
			c.put(asking(fmt.Sprint("asks", i)))
		}
		n, _ := start(t, c, Options{Taint: true})
		n.Report(fit(50))
		time.Sleep(time.Minute)
		before := c.calls("PATCH") + c.calls("POST")
		for range 12 {
			kubelet := c.theNode()
			for i := range kubelet.Status.Conditions {
				kubelet.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(time.Now())
			}
			c.put(kubelet)
			n.Report(fit(50))
			time.Sleep(5 * time.Minute)
		}
		got := c.calls("PATCH") + c.calls("POST") - before
		t.Logf("%d patches", got)
		if got != 0 {
			t.Errorf("%d writes in an idle hour", got)
		}
	})
}

// Agents that are restarted together do not write all nodes of a cluster together.
func TestARestartedAgentGoesOnFromTheNumberThatTheNodeShows(t *testing.T) {
	for _, tt := range []struct {
		name          string
		shown, silent int
		want          int
	}{
		{"less than there is", 40, 5, 40},
		{"all there is", 45, 5, 45},
		{"more than there is", 46, 5, 45},
		{"next to nothing of what there is", 10, 5, 45},
		{"nothing, as a kubelet leaves it", 0, 5, 45},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				node := newNode()
				node.Status.Conditions = append(node.Status.Conditions, conditionFor(fit(50), corev1.NodeCondition{}, metav1.Now()))
				for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
					list[Resource] = resourceQuantity(tt.shown)[Resource]
				}
				c.put(node)
				for i := range tt.silent {
					c.put(pod(fmt.Sprint("silent", i), here))
				}
				n, _ := start(t, c, Options{Taint: true})
				n.Report(fit(50))
				synctest.Wait()
				if is := c.theNode(); !offersNumber(is, tt.want) {
					t.Errorf("%s, want %d", dump(is), tt.want)
				}
				if got := c.calls("PATCH"); (got > 0) != (tt.shown != tt.want) {
					t.Errorf("%d patches", got)
				}
			})
		})
	}
}
