package claims_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fleet is what is known of many nodes with many claims, all of which have their pods. Each node has addresses for other pods too.
type fleet struct {
	*testing.B
	*claims.Known
	nodes, claims int
	now           time.Time
}

const (
	fleetKinds   = 8  // topologies, each with a subnet of its own
	fleetGeneral = 30 // addresses for other pods on each node
	fleetCome    = 1000
)

// kindRange returns the range of a topology: one address for each of its claims, and some more.
func (f *fleet) kindRange(kind, more int) (from, to netip.Addr) {
	from = netip.AddrFrom4([4]byte{10, byte(kind), 0, 16})
	last := 16 + (f.claims+fleetKinds-1)/fleetKinds + more - 1
	return from, netip.AddrFrom4([4]byte{10, byte(kind), byte(last >> 8), byte(last)})
}

func (f *fleet) take(e claims.Event) {
	if err := f.Known.Take(e); err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) podOf(i int) claims.Pod {
	return claims.Pod{Name: claims.Name{Namespace: "db", Name: fmt.Sprint("db-", i)}, UID: fmt.Sprint("uid-", i), Node: fmt.Sprint("node-", i%f.nodes), Topology: fmt.Sprint("kind-", i%fleetKinds),
		StatefulSet: topology.Workload{Name: "db", UID: "set"}}
}

// addrOf returns the address of a pod's claim.
func addrOfPod(i int) netip.Addr {
	n := 16 + i/fleetKinds
	return netip.AddrFrom4([4]byte{10, byte(i % fleetKinds), byte(n >> 8), byte(n)})
}

// newFleet has room for so many more pods in each topology.
func newFleet(b *testing.B, nodes, count, more int) *fleet {
	b.Helper()
	f := &fleet{B: b, Known: claims.New([]eni.Family{eni.IPv4}, 10*time.Second), nodes: nodes, claims: count, now: dawn}
	var subnets []topology.Subnet
	for kind := range fleetKinds {
		from, to := f.kindRange(kind, more)
		is := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("kind-", kind)}, Spec: crd.TopologySpec{Strategy: crd.Strategy{Type: "Fixed"},
			Subnets: []crd.Source{{ID: fmt.Sprint("s-", kind), Ranges: []crd.Range{{From: from.String(), To: to.String()}}}}}}
		f.take(claims.Event{Topology: is})
		subnets = append(subnets, topology.Subnet{ID: fmt.Sprint("s-", kind), Zone: "z", V4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(kind), 0, 0}), 16), Ready: true, Exclusive: true, KeptFirst: 4, KeptLast: 1})
	}
	f.SetSubnets(subnets)
	var pods []claims.Pod
	on := make([]map[int][]int, nodes) // pods of each node, by topology
	for i := range count {
		p := f.podOf(i)
		pods = append(pods, p)
		if on[i%nodes] == nil {
			on[i%nodes] = map[int][]int{}
		}
		on[i%nodes][i%fleetKinds] = append(on[i%nodes][i%fleetKinds], i)
		at := addrOfPod(i).String()
		f.take(claims.Event{Claim: &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: at, UID: types.UID(at), ResourceVersion: fmt.Sprint(1000 + i), Finalizers: []string{claims.Finalizer}},
			Spec:   crd.ClaimSpec{Topology: p.Topology, Subnet: fmt.Sprint("s-", i%fleetKinds), Address: at, Namespace: "db", Pod: p.Name.Name, Keep: "Workload", Workload: &crd.Workload{Kind: "StatefulSet", Name: "db", UID: "set"}},
			Status: crd.ClaimStatus{Phase: "Bound", PodUID: p.UID, Node: p.Node, Interface: fmt.Sprint(p.Node, "/", i%fleetKinds)}}})
	}
	f.take(claims.Event{Pods: &pods})
	f.take(claims.Event{Pods: &pods})
	f.take(claims.Event{Complete: true})
	for n := range nodes {
		f.SetNode(f.nodeOf(n, on[n]))
	}
	return f
}

// nodeOf returns a node as a term tells of it.
func (f *fleet) nodeOf(n int, pods map[int][]int) claims.Node {
	name := fmt.Sprint("node-", n)
	is := claims.Node{Name: name, Zone: "z", Told: true, Serves: true, Releasing: map[netip.Addr]bool{}, Published: map[netip.Addr]bool{}, Quarantined: map[netip.Addr]bool{}}
	general := claims.ENI{ID: name + "/0", Subnet: "general", Room: map[eni.Family]int{eni.IPv4: 10}}
	for k := range fleetGeneral {
		n := n*fleetGeneral + k
		general.Addresses = append(general.Addresses, netip.AddrFrom4([4]byte{11, byte(n >> 16), byte(n >> 8), byte(n)}))
	}
	is.ENIs = append(is.ENIs, general)
	for kind := range fleetKinds {
		if len(pods[kind]) == 0 && kind != n%fleetKinds {
			continue
		}
		e := claims.ENI{ID: fmt.Sprint(name, "/", kind), Subnet: fmt.Sprint("s-", kind), Room: map[eni.Family]int{eni.IPv4: 40}}
		for _, i := range pods[kind] {
			p := f.podOf(i)
			e.Addresses = append(e.Addresses, addrOfPod(i))
			is.Reserved = append(is.Reserved, order.Reserved{Addr: addrOfPod(i), Topology: p.Topology, Namespace: "db", Pod: p.Name.Name, UID: p.UID})
		}
		is.ENIs = append(is.ENIs, e)
	}
	return is
}

// come has pods without a claim come to nodes that have an ENI in the subnet of their topology.
func (f *fleet) come() {
	for i := range fleetCome {
		p := f.podOf(f.claims + i)
		node := (f.claims+i)%fleetKinds + i/fleetKinds*fleetKinds
		p.Node = fmt.Sprint("node-", node%(f.nodes/fleetKinds*fleetKinds))
		f.take(claims.Event{Pod: &p})
	}
}

// A decision on a whole cluster. A term makes one at most each 200 ms while something changes, and one each five seconds else.
func BenchmarkDecision(b *testing.B) {
	for _, size := range []struct{ nodes, claims int }{{1250, 5000}, {5000, 20_000}, {10_000, 40_000}} {
		for _, round := range []struct {
			name string
			more int // addresses that are left of each topology
			do   func(f *fleet)
		}{
			{"nothing has changed", fleetCome, func(f *fleet) { f.decide(0, 0) }},
			{"a pod has moved", fleetCome, func(f *fleet) {
				p := f.podOf(7)
				f.take(claims.Event{Pod: &p, Deleted: true})
				p.UID, p.Node = "next", fmt.Sprint("node-", f.nodes-1)
				f.take(claims.Event{Pod: &p})
				f.decide(1, 0)
			}},
			{"1,000 pods have come", fleetCome, func(f *fleet) { f.decide(0, 16) }},
			{"1,000 pods wait for room", 0, func(f *fleet) { f.decide(0, 0) }},
			{"it is counted", fleetCome, func(f *fleet) {
				if n := len(f.Counts()); n != fleetKinds {
					f.Fatalf("%d topologies are counted", n)
				}
			}},
		} {
			b.Run(fmt.Sprintf("%d nodes, %d claims/%s", size.nodes, size.claims, round.name), func(b *testing.B) {
				before := heapInUse()
				f := newFleet(b, size.nodes, size.claims, round.more)
				if round.more == 0 || round.name == "1,000 pods have come" {
					f.come()
				}
				f.DecideChanged(f.now, true) // a term's first decision is about all
				bytes := heapInUse() - before
				began := processTime(b)
				for b.Loop() {
					round.do(f)
				}
				b.ReportMetric(float64(processTime(b)-began)/float64(b.N)/1e6, "cpu-ms/op") // on a busy computer the time says little
				b.ReportMetric(float64(bytes)/1e6, "MB")
				runtime.KeepAlive(f)
			})
		}
	}
}

// decide decides once, and knows what follows.
func (f *fleet) decide(writes, creates int) {
	f.now = f.now.Add(200 * time.Millisecond)
	if s, _ := f.DecideChanged(f.now, true); len(s.Writes) != writes || len(s.Creates) != creates {
		f.Fatalf("%d writes and %d new claims, not %d and %d: %+v", len(s.Writes), len(s.Creates), writes, creates, s.Writes)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var is runtime.MemStats
	runtime.ReadMemStats(&is)
	return int64(is.HeapAlloc)
}

// processTime returns the processor time of the process so far.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
