package operator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// store is an API server in memory. It compares resourceVersions, and statuses as the objects' rules do. What it tells by its
// watches comes late, twice, and sometimes only in part, the newest in the end; writes fail before and after their effect.
type store struct {
	mu       sync.Mutex
	rng      *rand.Rand
	version  int
	networks map[string]*crd.NodeNetwork
	subnets  map[string]*crd.Subnet
	nodes    map[string]operator.Node
	watches  map[*watch]bool
	writes   map[string]int // status writes by node

	kindless bool                    // it makes no subnet: the kind is not there
	lag      time.Duration           // of watches, at most
	percent  int                     // of writes that fail, half of them after their effect
	overtake func(name string)       // is called before a status write that would succeed
	deny     func(name string) error // why a status write is refused, nil if it is not
	written  func(*crd.NodeNetwork)
	refuses  func(*crd.Subnet) error      // why a Subnet is neither made nor written, nil if it is
	prunes   func(*crd.NodeNetworkStatus) // takes away what the installed schema lacks, if it is there
	prunesOf func(*crd.SubnetStatus)      // the same of Subnets
	answers  time.Duration                // how long a write takes
	told     int                          // writes of Subnets
	wrong    []string                     // what no write may do
}

type watch struct {
	tell func(operator.Event)
	only string // the node, "" for all
}

var errServer = errors.New("the API server does not answer")

func newStore(seed uint64) *store {
	return &store{rng: rand.New(rand.NewPCG(seed, 1)), networks: map[string]*crd.NodeNetwork{}, subnets: map[string]*crd.Subnet{},
		nodes: map[string]operator.Node{}, watches: map[*watch]bool{}, writes: map[string]int{}}
}

func (s *store) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// chance tells whether something of so many percent happens. The caller holds the lock.
func (s *store) chance(percent int) bool { return s.rng.IntN(100) < percent }

// tell tells the watches of an object as it is now. The caller holds the lock.
func (s *store) tell(name string, e operator.Event) {
	for w := range s.watches {
		if w.only != "" && w.only != name {
			continue
		}
		late := time.Duration(s.rng.Int64N(int64(s.lag) + 1))
		again := s.chance(20)
		go func() {
			time.Sleep(late)
			w.tell(e)
			if again {
				time.Sleep(late)
				w.tell(e)
			}
		}()
	}
}

func (s *store) watchNode(ctx context.Context, name string, tell func(operator.Event)) {
	w := &watch{tell, name}
	s.mu.Lock()
	s.watches[w] = true
	// What has changed before it was there it tells of too, as a watch that begins with a list does.
	for key, n := range s.networks {
		if only := w.only; only == "" || only == key {
			s.tell(key, operator.Event{Network: n.DeepCopy()})
		}
	}
	for _, n := range s.subnets {
		s.tell("", operator.Event{Subnet: n.DeepCopy()})
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	delete(s.watches, w)
	s.mu.Unlock()
}

// Watch implements operator.Objects.
func (s *store) Watch(ctx context.Context, tell func(operator.Event)) { s.watchNode(ctx, "", tell) }

// ReadAll implements operator.Objects.
func (s *store) ReadAll(context.Context) (all operator.Cluster, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		all.Nodes = append(all.Nodes, n)
	}
	for _, n := range s.networks {
		all.Networks = append(all.Networks, n.DeepCopy())
	}
	for _, n := range s.subnets {
		all.Subnets = append(all.Subnets, n.DeepCopy())
	}
	return all, nil
}

// ReadNode implements operator.Objects.
func (s *store) ReadNode(_ context.Context, name string) (*crd.NodeNetwork, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.networks[name]; n != nil {
		return n.DeepCopy(), nil
	}
	return nil, operator.ErrGone
}

// put makes an object or writes a spec with its resourceVersion.
func (s *store) put(n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.networks[n.Name]
	next := n.DeepCopy()
	switch {
	case old == nil && n.ResourceVersion == "":
		next.UID, next.Generation, next.Finalizers = types.UID("uid-"+n.Name+"-"+s.next()), 1, []string{operator.Finalizer}
	case old == nil || old.ResourceVersion != n.ResourceVersion:
		return nil, operator.ErrConflict
	default:
		next.Status = old.DeepCopy().Status
		if !reflect.DeepEqual(old.Spec, next.Spec) {
			next.Generation++
		}
	}
	return s.keep(next), nil
}

// keep keeps a version and tells of it. The caller holds the lock.
func (s *store) keep(n *crd.NodeNetwork) *crd.NodeNetwork {
	n.ResourceVersion = s.next()
	s.networks[n.Name] = n
	s.tell(n.Name, operator.Event{Network: n.DeepCopy()})
	return n.DeepCopy()
}

// WriteNode implements operator.Objects.
func (s *store) WriteNode(ctx context.Context, n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	time.Sleep(s.answers)
	s.mu.Lock()
	overtake, deny := s.overtake, s.deny
	s.mu.Unlock()
	if deny != nil {
		if err := deny(n.Name); err != nil {
			return nil, err
		}
	}
	if overtake != nil {
		overtake(n.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fails, after := s.chance(s.percent), s.chance(50)
	old := s.networks[n.Name]
	switch {
	case fails && !after:
		return nil, errServer
	case old == nil || old.UID != n.UID:
		return nil, operator.ErrGone
	case old.ResourceVersion != n.ResourceVersion:
		return nil, operator.ErrConflict
	}
	was, _ := old.Status.Read()
	is, err := n.Status.Read()
	if err != nil {
		s.wrong = append(s.wrong, fmt.Sprintf("%s: %v", n.Name, err))
	}
	if is.Epoch < was.Epoch {
		return nil, operator.ErrConflict
	}
	if !order.Follows(was, is) {
		s.wrong = append(s.wrong, fmt.Sprintf("%s: revision %d with %+v follows revision %d with %+v", n.Name, is.Revision, is, was.Revision, was))
	}
	next := old.DeepCopy()
	next.Status = n.DeepCopy().Status
	if s.prunes != nil {
		s.prunes(&next.Status)
	}
	s.writes[n.Name]++
	if reflect.DeepEqual(old.Status, next.Status) { // the API server writes nothing then
		return old.DeepCopy(), nil
	}
	written := s.keep(next)
	if s.written != nil {
		s.written(next)
	}
	if fails {
		return nil, errServer
	}
	return written, nil
}

// remove begins to delete an object.
func (s *store) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.networks[name].DeepCopy()
	next.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	s.keep(next)
}

// DropFinalizer implements operator.Objects.
func (s *store) DropFinalizer(_ context.Context, n *crd.NodeNetwork) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.networks[n.Name]
	switch {
	case old == nil || old.UID != n.UID:
		return operator.ErrGone
	case old.ResourceVersion != n.ResourceVersion:
		return operator.ErrConflict
	}
	delete(s.networks, n.Name)
	s.tell(n.Name, operator.Event{Network: old.DeepCopy(), Deleted: true})
	return nil
}

// CreateSubnet implements operator.Objects.
func (s *store) CreateSubnet(_ context.Context, n *crd.Subnet) (*crd.Subnet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.kindless:
		return nil, errServer
	case s.subnets[n.Name] != nil:
		return nil, operator.ErrConflict
	}
	if s.refuses != nil {
		if err := s.refuses(n); err != nil {
			return nil, err
		}
	}
	made := n.DeepCopy()
	made.UID = types.UID("uid-" + n.Name + "-" + s.next())
	return s.keepSubnet(made), nil
}

// WriteSubnet implements operator.Objects.
func (s *store) WriteSubnet(_ context.Context, n *crd.Subnet) (*crd.Subnet, error) {
	time.Sleep(s.answers)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subnets[n.Name]
	if old == nil || old.ResourceVersion != n.ResourceVersion {
		return nil, operator.ErrConflict
	}
	next := old.DeepCopy()
	next.Status = n.DeepCopy().Status
	s.told++
	if s.prunesOf != nil {
		s.prunesOf(&next.Status)
	}
	if reflect.DeepEqual(old.Status, next.Status) {
		return old.DeepCopy(), nil
	}
	return s.keepSubnet(next), nil
}

func (s *store) keepSubnet(n *crd.Subnet) *crd.Subnet {
	n.ResourceVersion = s.next()
	s.subnets[n.Name] = n
	s.tell("", operator.Event{Subnet: n.DeepCopy()})
	return n.DeepCopy()
}

// versions returns how many writes there were.
func (s *store) versions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// node returns an object as it is, for tests to look at.
func (s *store) node(name string) *crd.NodeNetwork {
	n, _ := s.ReadNode(context.Background(), name)
	return n
}

// replaceInstance lets a Node have another instance.
func (s *store) replaceInstance(name, instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	n.Instance = instance
	s.nodes[name] = n
	s.tell("", operator.Event{Node: &n})
}

// putBack makes an object what it was, as a store does that is put back from a backup: with a version of its own.
func (s *store) putBack(n *crd.NodeNetwork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(n.DeepCopy())
}

// forgetNode deletes a Node.
func (s *store) forgetNode(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	delete(s.nodes, name)
	s.tell("", operator.Event{Node: &n, Deleted: true})
}

// removeSubnet deletes a Subnet, as somebody does who prunes what no repository has.
func (s *store) removeSubnet(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.subnets[name]
	delete(s.subnets, name)
	s.tell("", operator.Event{Subnet: old.DeepCopy(), Deleted: true})
}

// changeNode lets a Node say something else.
func (s *store) changeNode(name string, to func(*operator.Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	to(&n)
	s.nodes[name] = n
	s.tell("", operator.Event{Node: &n})
}

// writesOf returns how often a node's status was written.
func (s *store) writesOf(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes[name]
}

// forgetSubnets deletes the objects of all subnets.
func (s *store) forgetSubnets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, n := range s.subnets {
		delete(s.subnets, name)
		s.tell("", operator.Event{Subnet: n.DeepCopy(), Deleted: true})
	}
}
