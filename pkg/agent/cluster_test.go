package agent

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/nodecache"
)

// testAPI is a cluster with what a node's watch has seen of it.
type testAPI struct {
	pods   []eni.Pod              // the truth
	seen   []eni.Pod              // what the watch has
	ips    map[eni.Pod]netip.Addr // that kubelets show
	synced bool
	away   bool          // the watch hears nothing
	jump   time.Duration // of the node's clock

	told    []health.Report // that differ from the one before
	warned  []string        // reason and pod
	message string          // of the last warning
}

// hear brings the watch to the truth unless the API server is away.
func (n *testNode) hear() {
	n.mu.Lock()
	if !n.api.away {
		n.api.seen, n.api.synced = slices.Clone(n.api.pods), true
	}
	n.mu.Unlock()
	n.wake()
}

// bind is the scheduler's work: a new pod of that name is the node's.
func (n *testNode) bind(name string) eni.Pod {
	n.mu.Lock()
	n.serial++
	p := eni.Pod{UID: fmt.Sprintf("uid-%d", n.serial), Namespace: "default", Name: name}
	n.api.pods = append(n.api.pods, p)
	n.mu.Unlock()
	n.hear()
	return p
}

// unbind removes the pod from the cluster. Its sandbox may be there yet.
func (n *testNode) unbind(p eni.Pod) {
	n.mu.Lock()
	n.api.pods = slices.DeleteFunc(n.api.pods, func(q eni.Pod) bool { return p == q })
	n.mu.Unlock()
	n.hear()
}

// sandbox is an ADD for a pod of the cluster, in a sandbox of its own.
func (n *testNode) sandbox(p eni.Pod) error {
	n.mu.Lock()
	n.serial++
	o := eni.Owner{Key: eni.Key{Network: "pods", Container: fmt.Sprintf("%s-%d", n.name, n.serial), IfName: "eth0"},
		Namespace: p.Namespace, Pod: p.Name, UID: p.UID, Netns: fmt.Sprintf("/run/netns/%d", n.serial)}
	n.mu.Unlock()
	return n.addOwner(o)
}

// giveUp lets the ADDs that wait fail: the plugin announces that their runtime is
// about to try again.
func (n *testNode) giveUp() {
	n.mu.Lock()
	for k, w := range n.waiting {
		w.Since, w.Until, w.Failed = n.w.now(), n.w.now()+15*time.Second, true
		n.waiting[k] = w
	}
	n.mu.Unlock()
	n.wake()
}

// forget takes the ADDs that wait away, as their runtime tears the sandboxes down.
func (n *testNode) forget() {
	n.mu.Lock()
	n.waiting = map[eni.Key]nodecache.PendingADD{}
	n.mu.Unlock()
}

// last is what the cluster was told last.
func (n *testNode) last() health.Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.api.told) == 0 {
		return health.Report{Capacity: -1}
	}
	return n.api.told[len(n.api.told)-1]
}

// warnings returns the pods whose people were told, and forgets them.
func (n *testNode) warnings() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.api.warned
	n.api.warned = nil
	slices.Sort(list)
	return list
}

func (p process) clusterPods() (list []eni.Pod, known bool) {
	_ = p.see(func() error {
		list, known = p.n.api.seen, p.n.api.synced
		return nil
	})
	return list, known
}

func (p process) podIPs() (shown map[eni.Pod]netip.Addr) {
	_ = p.see(func() error {
		shown = maps.Clone(p.n.api.ips)
		return nil
	})
	return shown
}

func (p process) wall() (t time.Time) {
	t = time.Now()
	_ = p.see(func() error {
		t = t.Add(p.n.api.jump)
		return nil
	})
	return t
}

func (p process) report(r health.Report) {
	_ = p.see(func() error {
		if a := p.n.api; len(a.told) == 0 || a.told[len(a.told)-1] != r {
			a.told = append(a.told, r)
		}
		return nil
	})
}

func (p process) warn(pod eni.Pod, reason, message string) {
	_ = p.see(func() error {
		p.n.api.warned = append(p.n.api.warned, reason+" "+pod.Namespace+"/"+pod.Name)
		p.n.api.message = message
		return nil
	})
}
