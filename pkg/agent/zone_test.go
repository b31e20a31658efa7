package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/engine"
	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/kube/crd/convert"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
)

// zone is a cluster of one zone: an API server in memory, an operator, and the nodes' agents, all of them the real ones but
// for the API server.
type zone struct {
	*world
	prefixes bool
	mu       sync.Mutex
	version  int
	networks map[string]*crd.NodeNetwork
	subnets  map[string]*crd.Subnet
	watches  map[int]func(operator.Event)
	specs    map[string]int // writes of agents
	epoch    int64
	end      func()
	wrote    func(old, next *crd.NodeNetwork) // is told of each write, if it is there; old is nil of a new object
}

// addZoneNode adds a node that keeps so many slots free. Its primary ENI lies in subnet-a.
func (z *zone) addZoneNode(name string, free int, limits eni.Limits) *testNode {
	conf := testConfig(name)
	conf.Pool.Mode, conf.Pool.PreAllocate, conf.Pool.MaxAboveWatermark = pool.BestEffort, free, 0
	n := z.addNode(conf, sim.NodeSpec{Limits: limits, Subnet: "subnet-a", New: []string{"subnet-a"}})
	n.callsBy(agentconf.Operator)
	n.zone = z
	return n
}

// inZone runs a test of a zone whose nodes keep so many slots free and have that many pods each.
func inZone(t *testing.T, pods int, free []int, test func(t *testing.T, z *zone)) {
	inZoneOf(t, []sim.Subnet{subnet("subnet-a", "10.0.4.0/24")}, slices.Repeat([]eni.Limits{{ENIs: 2, V4: 40}}, len(free)), pods, free, test)
}

// inZoneOf does that with other subnets, and with limits for each node.
func inZoneOf(t *testing.T, subnets []sim.Subnet, limits []eni.Limits, pods int, free []int, test func(t *testing.T, z *zone)) {
	synctest.Test(t, func(t *testing.T) {
		for i := range subnets {
			subnets[i].Tags = map[string]string{"pods": "yes"}
		}
		w := newWorld(t, sim.Options{VPC: sim.VPC{ID: "vpc", V4: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}}, subnets...)
		z := &zone{world: w, networks: map[string]*crd.NodeNetwork{}, subnets: map[string]*crd.Subnet{}, watches: map[int]func(operator.Event){}, specs: map[string]int{}}
		for i, n := range free {
			z.addZoneNode(fmt.Sprint("n", i), n, limits[i]).seed = uint64(i)
		}
		z.prefixes = limits[0].V4Block.Size > 0
		z.lead()
		defer func() { z.end() }()
		for _, n := range w.nodes {
			n.start(-1, false)
			defer func() { n.stop() }()
		}
		sleep(time.Minute)
		for _, n := range w.nodes {
			n.fillWith(t, pods)
		}
		sleep(15 * time.Minute)
		test(t, z)
		n := w.check()
		if n != nil {
			t.Error(n)
		}
	})
}

// elsewhere is a driver of a process that runs on no node.
type elsewhere struct{ driver.Driver }

func (elsewhere) Self(context.Context) (driver.Self, error) {
	return driver.Self{Instance: "i-0", VPC: "vpc"}, nil
}

// lead makes an operator that knows nothing of one before it.
func (z *zone) lead() {
	traits := sim.LikeEC2()
	gate := operator.NewGate(operator.Wall{})
	region := engine.NewRegion(elsewhere{z.account.Driver("", traits)}, engine.Options{SubnetTags: map[string]string{"pods": "yes"}, Cluster: "blue", Prefixes: z.prefixes, Admit: gate.Admit, Limit: 5 * time.Second})
	op, err := operator.New(operator.Options{Region: region, Objects: z, Lease: testLease, Timeout: 5 * time.Second, Gate: gate, Actions: traits.ActionsOf, Share: 100})
	if err != nil {
		z.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	acquired := time.Now()
	go func() {
		defer close(ended)
		err := op.Run(ctx, operator.Lead{Epoch: z.epoch, Acquired: acquired, Renewed: time.Now, Number: func(_ context.Context, epoch int64) error {
			z.epoch = epoch
			return nil
		}})
		if !errors.Is(err, context.Canceled) {
			z.t.Errorf("the operator ends: %v", err)
		}
	}()
	z.end = func() {
		cancel()
		<-ended
	}
}

// next numbers a version. The caller holds the lock.
func (z *zone) next() string {
	z.version++
	return strconv.Itoa(z.version)
}

func (z *zone) tell(e operator.Event) {
	for _, tell := range z.watches {
		tell(e)
	}
}

// Watch implements operator.Objects.
func (z *zone) Watch(ctx context.Context, tell func(operator.Event)) {
	z.mu.Lock()
	id := len(z.watches) + z.version
	z.watches[id] = tell
	for _, n := range z.networks { // what was made before the watch was there
		tell(operator.Event{Network: n.DeepCopy()})
	}
	for _, s := range z.subnets {
		tell(operator.Event{Subnet: s.DeepCopy()})
	}
	z.mu.Unlock()
	<-ctx.Done()
	z.mu.Lock()
	delete(z.watches, id)
	z.mu.Unlock()
}

// ReadAll implements operator.Objects.
func (z *zone) ReadAll(context.Context) (all operator.Cluster, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, n := range z.nodes {
		all.Nodes = append(all.Nodes, z.nodeOf(n))
	}
	for _, n := range z.networks {
		all.Networks = append(all.Networks, n.DeepCopy())
	}
	for _, s := range z.subnets {
		all.Subnets = append(all.Subnets, s.DeepCopy())
	}
	return all, nil
}

func (z *zone) nodeOf(n *testNode) operator.Node {
	where := ""
	z.account.View(0, func(tx *sim.Tx) { where = tx.Subnets()[0].Zone })
	return operator.Node{Name: n.name, Instance: n.name, Type: n.name, Zone: where}
}

// join tells of a node that comes while the operator leads.
func (z *zone) join(n *testNode) {
	z.mu.Lock()
	defer z.mu.Unlock()
	is := z.nodeOf(n)
	z.tell(operator.Event{Node: &is})
}

// ReadNode implements operator.Objects.
func (z *zone) ReadNode(_ context.Context, name string) (*crd.NodeNetwork, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if n := z.networks[name]; n != nil {
		return n.DeepCopy(), nil
	}
	return nil, operator.ErrGone
}

// object returns what there is of a node.
func (z *zone) object(name string) *crd.NodeNetwork {
	n, err := z.ReadNode(context.Background(), name)
	if err != nil {
		z.t.Fatal(err)
	}
	return n
}

// keep keeps a version of an object and tells of it. The caller holds the lock.
func (z *zone) keep(n *crd.NodeNetwork) *crd.NodeNetwork {
	n.ResourceVersion = z.next()
	if z.wrote != nil {
		z.wrote(z.networks[n.Name], n)
	}
	z.networks[n.Name] = n
	z.tell(operator.Event{Network: n.DeepCopy()})
	return n.DeepCopy()
}

// WriteNode implements operator.Objects.
func (z *zone) WriteNode(_ context.Context, n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	old := z.networks[n.Name]
	if old.ResourceVersion != n.ResourceVersion || n.Status.Epoch < old.Status.Epoch {
		return nil, operator.ErrConflict
	}
	next := old.DeepCopy()
	next.Status = n.DeepCopy().Status
	defer z.wakeNode(n.Name)
	return z.keep(next), nil
}

func (z *zone) wakeNode(name string) {
	for _, n := range z.nodes {
		if n.name == name {
			n.wake()
		}
	}
}

// DropFinalizer implements operator.Objects.
func (z *zone) DropFinalizer(context.Context, *crd.NodeNetwork) error { return operator.ErrGone }

// CreateSubnet implements operator.Objects.
func (z *zone) CreateSubnet(_ context.Context, s *crd.Subnet) (*crd.Subnet, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.keepSubnet(s.DeepCopy()), nil
}

// WriteSubnet implements operator.Objects.
func (z *zone) WriteSubnet(_ context.Context, s *crd.Subnet) (*crd.Subnet, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.keepSubnet(s.DeepCopy()), nil
}

func (z *zone) keepSubnet(s *crd.Subnet) *crd.Subnet {
	s.ResourceVersion = z.next()
	z.subnets[s.Name] = s
	z.tell(operator.Event{Subnet: s.DeepCopy()})
	return s.DeepCopy()
}

// zoneObject is the object of a node as one process of its agent sees it.
type zoneObject struct {
	z *zone
	p process
}

// Newest implements Object.
func (o zoneObject) Newest() (order.Object, bool) {
	n, err := o.z.ReadNode(context.Background(), o.p.n.name)
	if err != nil {
		return order.Object{}, true
	}
	copied, err := convert.Object(n)
	if err != nil {
		o.z.t.Error(err)
	}
	return copied, true
}

// First implements Object.
func (o zoneObject) First() (order.Object, bool) { return o.Newest() }

func (o zoneObject) ReadAgain() {} // First is the newest one here

// Wrong implements Object.
func (o zoneObject) Wrong() error { return nil }

// Write implements Object.
func (o zoneObject) Write(_ context.Context, from order.Object, spec order.Spec, asks order.Asks) (written order.Object, err error) {
	failed := o.p.do(func() error {
		written, err = o.z.writeSpec(o.p.n.name, from.Version, spec, asks)
		return nil
	})
	if failed != nil {
		return order.Object{}, failed
	}
	return written, err
}

func (z *zone) writeSpec(name, version string, spec order.Spec, asks order.Asks) (order.Object, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.specs[name]++
	old := z.networks[name]
	if old == nil {
		old = &crd.NodeNetwork{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Finalizers: []string{operator.Finalizer}}}
	}
	if old.ResourceVersion != version {
		return order.Object{}, order.ErrConflict
	}
	next := old.DeepCopy()
	if next.Spec = convert.ToSpec(spec, asks, old.Spec); !reflect.DeepEqual(next.Spec, old.Spec) {
		next.Generation++
	}
	return convert.Object(z.keep(next))
}
