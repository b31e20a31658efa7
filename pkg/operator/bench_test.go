package operator

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/quota"
	"k8s.io/apimachinery/pkg/types"
)

// bench is a cluster of nodes that have what they ask for, with an API server and a cloud that answer at once, in virtual time.
type bench struct {
	*testing.B
	*term
	cloud   map[string]*cloud.View // by instance
	objects map[string]*crd.NodeNetwork
	mu      sync.Mutex
	next    uint32 // address
	version int
	writes  int
	room    int // addresses that an ENI carries
	time    time.Time
}

const (
	benchNodes   = 5000
	benchSubnets = 20
	benchBatch   = 16
)

func newBench(b *testing.B, burstable bool) *bench {
	b.Helper()
	w := &bench{B: b, cloud: map[string]*cloud.View{}, objects: map[string]*crd.NodeNetwork{}, next: 10 << 24, time: time.Now(), room: 1000}
	if burstable { // whose ENIs are full
		w.room = benchBatch + 1
	}
	plenty := quota.Limit{Burst: 100_000, PerSecond: 100_000}
	o, err := New(Options{Region: benchRegion{w: w}, Objects: benchObjects{w: w}, Lease: order.Lease{Duration: 15 * time.Second, Settle: 10 * time.Second, Fence: 6 * time.Minute},
		Timeout: 5 * time.Second, Gate: NewGate(benchClock{w}), Clock: benchClock{w}, Actions: func(part string) []string { return []string{part} },
		Budget: map[string]quota.Limit{"Assign": plenty, "Assign.Primary": plenty, "Create": plenty, "Unassign": plenty, "Page": plenty}})
	if err != nil {
		b.Fatal(err)
	}
	all := Cluster{}
	for i := range benchSubnets {
		all.Subnets = append(all.Subnets, &crd.Subnet{Spec: crd.SubnetSpec{Use: "Shared"}})
		all.Subnets[i].Name, all.Subnets[i].ResourceVersion, all.Subnets[i].UID = benchSubnet(i), "1", types.UID(benchSubnet(i))
	}
	for i := range benchNodes {
		name := fmt.Sprintf("node-%04d", i)
		all.Nodes = append(all.Nodes, Node{Name: name, Instance: "i-" + name, Type: "large", Zone: "zone", Labels: map[string]string{"name": name}})
		n := &crd.NodeNetwork{Spec: crd.NodeNetworkSpec{Mode: crd.Operator, Families: []string{"IPv4"}, Slots: 2 * benchBatch, Boot: "boot", Pool: crd.Pool{Mode: "batch", Batch: benchBatch}}}
		if burstable {
			n.Spec.Pool = crd.Pool{Mode: "burstable", Multiple: 1}
		}
		n.Name, n.UID, n.Generation, n.ResourceVersion = name, types.UID("uid-"+name), 1, "1"
		view := &cloud.View{}
		for k := range 2 {
			nic := cloud.Interface{ID: fmt.Sprint("eni-", i, "-", k), Index: k, MAC: "02:00:00:00:00:01", Subnet: benchSubnet(i % benchSubnets), Ours: k > 0, V4: eni.Net{Primary: netip.PrefixFrom(w.address(), 8)}}
			for range benchBatch {
				nic.Addresses = append(nic.Addresses, w.address())
			}
			view.Interfaces = append(view.Interfaces, nic)
		}
		w.cloud["i-"+name] = view
		w.objects[name] = n
		all.Networks = append(all.Networks, n.DeepCopy())
	}
	w.term = openBench(b, o, w.time)
	w.takeAll(all)
	w.pass(11 * time.Second) // the first describe
	w.pass(time.Second)
	w.pass(11 * time.Minute)
	w.pass(time.Second)
	for name, n := range w.objects {
		if n.Status.Slots != 2*benchBatch {
			b.Fatalf("%s: %+v", name, n.Status)
		}
	}
	w.writes = 0
	return w
}

func benchSubnet(i int) string { return fmt.Sprint("subnet-", i) }

// address returns a new one. The caller holds the lock, or there is nobody else.
func (w *bench) address() netip.Addr {
	w.next++
	return netip.AddrFrom4([4]byte{byte(w.next >> 24), byte(w.next >> 16), byte(w.next >> 8), byte(w.next)})
}

// pass lets time pass and the operator do what there is to do.
func (w *bench) pass(d time.Duration) {
	w.time = w.time.Add(d)
	for {
		w.turn()
		w.under.Wait()
		w.term.mu.Lock()
		waits := len(w.inbox) + len(w.dirty)
		w.term.mu.Unlock()
		if waits == 0 {
			return
		}
	}
}

// write changes the spec of a node as its agent does, and tells the operator.
func (w *bench) write(i int, change func(*crd.NodeNetworkSpec)) {
	w.mu.Lock()
	name := fmt.Sprintf("node-%04d", i)
	n := w.objects[name].DeepCopy()
	change(&n.Spec)
	n.Generation++
	w.version++
	n.ResourceVersion = strconv.Itoa(1000 + w.version)
	w.objects[name] = n
	w.mu.Unlock()
	w.post(func(t *term) { t.takeEvent(Event{Network: n}) })
}

// A round of the operator in a cluster of 5,000 nodes, in each of which one thing happens.
func BenchmarkRound(b *testing.B) {
	for _, mode := range []string{"batch", "burstable"} {
		for _, round := range []struct {
			name string
			do   func(w *bench, i int)
		}{
			{"nothing", func(*bench, int) {}},
			{"a heartbeat of a Node", func(w *bench, i int) {
				n := w.nodes[fmt.Sprintf("node-%04d", i%benchNodes)]
				w.post(func(t *term) { t.takeEvent(Event{Node: &n}) })
			}},
			{"a spec", func(w *bench, i int) {
				w.write(i%benchNodes, func(s *crd.NodeNetworkSpec) { s.IdleSlots++ })
			}},
			{"an order", func(w *bench, i int) {
				w.write(i%benchNodes, func(s *crd.NodeNetworkSpec) { s.Slots += benchBatch })
			}},
			{"a describe", func(w *bench, _ int) { w.time = w.time.Add(6 * time.Minute) }},
		} {
			if mode == "burstable" && round.name == "an order" {
				continue // it makes ENIs
			}
			b.Run(mode+"/"+round.name, func(b *testing.B) {
				w := newBench(b, mode == "burstable")
				for i := 0; b.Loop(); i++ {
					round.do(w, i)
					w.pass(time.Second)
				}
				b.ReportMetric(float64(w.writes)/float64(b.N), "writes/op")
			})
		}
	}
}

// benchClock is a clock that is set.
type benchClock struct{ w *bench }

func (c benchClock) Now() time.Time                                      { return c.w.time }
func (benchClock) Sleep(context.Context, <-chan struct{}, time.Duration) {}

// benchRegion is a cloud that answers at once.
type benchRegion struct {
	cloud.Region
	w *bench
}

func (r benchRegion) Node(i cloud.Instance) cloud.Cloud { return benchNode{w: r.w, instance: i.ID} }
func (benchRegion) Forget(string)                       {}
func (benchRegion) Does() cloud.Capabilities            { return cloud.Capabilities{Types: true} }
func (benchRegion) Buckets() map[string]cloud.Bucket    { return nil }

func (r benchRegion) Look(_ context.Context, instances []string) (map[string]cloud.View, error) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	views := map[string]cloud.View{}
	for _, id := range instances {
		v := *r.w.cloud[id]
		v.Interfaces = append([]cloud.Interface(nil), v.Interfaces...)
		for k := range v.Interfaces {
			v.Interfaces[k].Addresses = append([]netip.Addr(nil), v.Interfaces[k].Addresses...)
		}
		views[id] = v
	}
	return views, nil
}

func (r benchRegion) Limits(_ context.Context, names []string) (map[string]eni.Limits, error) {
	all := map[string]eni.Limits{}
	for _, name := range names {
		all[name] = eni.Limits{ENIs: 8, V4: r.w.room}
	}
	return all, nil
}

func (r benchRegion) Subnets(context.Context) (list []cloud.Place, err error) {
	for i := range benchSubnets {
		list = append(list, cloud.Place{Subnet: cloud.Subnet{ID: benchSubnet(i), Free: 60_000_000, New: true}, VPC: "vpc", Zone: "zone"})
	}
	return list, nil
}

// benchNode is one instance of it.
type benchNode struct {
	cloud.Cloud
	w        *bench
	instance string
}

func (benchNode) Recall(cloud.Notes) {}

func (n benchNode) AssignAddresses(_ context.Context, id string, _ eni.Family, count int) (got []netip.Addr, err error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	for k := range n.w.cloud[n.instance].Interfaces {
		if nic := &n.w.cloud[n.instance].Interfaces[k]; nic.ID == id {
			for range count {
				got = append(got, n.w.address())
			}
			nic.Addresses = append(nic.Addresses, got...)
		}
	}
	return got, nil
}

// benchObjects is an API server that answers at once.
type benchObjects struct {
	Objects
	w *bench
}

func (o benchObjects) WriteNode(_ context.Context, n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if o.w.objects[n.Name].ResourceVersion != n.ResourceVersion {
		return o.w.objects[n.Name], ErrConflict
	}
	next := n.DeepCopy()
	o.w.version++
	o.w.writes++
	next.ResourceVersion = strconv.Itoa(1000 + o.w.version)
	o.w.objects[n.Name] = next
	return next, nil
}

func (o benchObjects) WriteSubnet(_ context.Context, s *crd.Subnet) (*crd.Subnet, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	next := s.DeepCopy()
	o.w.version++
	next.ResourceVersion = strconv.Itoa(1000 + o.w.version)
	return next, nil
}

func (o benchObjects) ReadNode(_ context.Context, name string) (*crd.NodeNetwork, error) {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	return o.w.objects[name], nil
}
