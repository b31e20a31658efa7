package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/order"
)

// store is an API server in memory. It compares resourceVersions, and statuses as the rules of the kinds do. What is kept in it is
// never changed in place.
type store struct {
	mu      sync.Mutex
	rng     *rand.Rand
	version int
	uids    int
	objects map[string]any // by kind and name: *crd.NodeNetwork, *crd.Subnet, *operator.Node
	log     []change       // the latest changes
	dropped int            // changes before those
	watches map[*watch]bool
	lease   *coordinationv1.Lease

	weather
	writes map[string]int // by what was written
	wrong  func(format string, args ...any)
}

// weather is what goes wrong with an API server.
type weather struct {
	lag       time.Duration // of watches, at most
	fails     int           // percent of writes that fail, half of them after their effect
	conflicts int           // percent of writes before which somebody else writes the object
	past      int           // percent of lists of operators' watches that are of the past
	cuts      int           // percent of events after which their watch breaks off
	away      bool          // it answers nobody
	kindless  bool          // the kinds are being deleted: no object of them is made
	blind     bool          // it does not compare versions: a rule is switched off
	older     bool          // its kinds do not have the leader whose status an agent has read
}

// change is one of an object, nil for none.
type change struct {
	key           string
	before, after any
	version       int // of the store after it
}

var (
	errServer   = errors.New("the API server does not answer")
	errConflict = errors.New("the object has been modified")
	errNotFound = errors.New("not found")
)

func newStore(seed uint64, wrong func(string, ...any)) *store {
	return &store{rng: rand.New(rand.NewPCG(seed, 21)), objects: map[string]any{}, watches: map[*watch]bool{}, writes: map[string]int{}, wrong: wrong}
}

// chance tells whether something of so many percent happens. The caller holds the lock.
func (s *store) chance(percent int) bool { return percent > 0 && s.rng.IntN(100) < percent }

// set changes what goes wrong.
func (s *store) set(f func(*weather)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.weather)
}

// latency is half the time of a request.
func (s *store) latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Millisecond + time.Duration(s.rng.Int64N(int64(10*time.Millisecond)))
}

// read is a request that reads.
func (s *store) read(ctx context.Context, f func()) error {
	return s.request(ctx, "", func() error { f(); return nil })
}

// request is one to the API server, which writes an object, "" for none: it takes time, and fails in all the ways that the weather has.
func (s *store) request(ctx context.Context, writes string, f func() error) error {
	sleep(ctx, s.latency())
	err := s.serve(ctx, writes, f)
	sleep(ctx, s.latency())
	return err
}

func (s *store) serve(ctx context.Context, writes string, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fails, after := writes != "" && s.chance(s.fails), s.chance(50)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.away, fails && !after:
		return errServer
	case writes != "" && s.chance(s.conflicts):
		s.touch(writes)
	}
	if err := f(); err != nil || !fails {
		return err
	}
	return errServer
}

// touch gives an object another version.
func (s *store) touch(key string) {
	switch o := s.objects[key].(type) {
	case *crd.NodeNetwork:
		s.keepNetwork(o.DeepCopy())
	case *crd.Subnet:
		s.keepSubnet(o.DeepCopy())
	}
}

// nextVersion numbers a version. The caller holds the lock, as for all that follows.
func (s *store) nextVersion() string {
	s.version++
	return strconv.Itoa(s.version)
}

func networkKey(name string) string { return "network " + name }
func subnetKey(name string) string  { return "subnet " + name }

func (s *store) network(name string) *crd.NodeNetwork {
	n, _ := s.objects[networkKey(name)].(*crd.NodeNetwork)
	return n
}

// keep keeps an object, nil for none any more, and tells of it.
func (s *store) keep(key string, after any) {
	if s.objects[key] == nil && after == nil {
		return
	}
	c := change{key: key, before: s.objects[key], after: after}
	if s.objects[key] = after; after == nil {
		delete(s.objects, key)
		s.version++
	}
	c.version = s.version
	if s.log = append(s.log, c); len(s.log) > 4000 {
		s.log, s.dropped = append([]change(nil), s.log[2000:]...), s.dropped+2000
	}
	for w := range s.watches {
		s.tell(w, c)
	}
}

func (s *store) keepNetwork(n *crd.NodeNetwork) *crd.NodeNetwork {
	n.ResourceVersion = s.nextVersion()
	s.keep(networkKey(n.Name), n)
	return n
}

func (s *store) keepSubnet(n *crd.Subnet) *crd.Subnet {
	n.ResourceVersion = s.nextVersion()
	s.keep(subnetKey(n.Name), n)
	return n
}

// makeNetwork makes an object of a node, as its agent does.
func (s *store) makeNetwork(name string, spec crd.NodeNetworkSpec) (*crd.NodeNetwork, error) {
	switch {
	case s.kindless:
		return nil, errServer
	case s.network(name) != nil:
		return nil, errConflict
	}
	s.uids++
	s.writes["spec"]++
	return s.keepNetwork(&crd.NodeNetwork{Spec: spec, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%d", name, s.uids)),
		Generation: 1, Finalizers: []string{operator.Finalizer}}}), nil
}

// writeSpec replaces a spec.
func (s *store) writeSpec(name, version string, spec crd.NodeNetworkSpec) (*crd.NodeNetwork, error) {
	old := s.network(name)
	if old == nil || old.ResourceVersion != version && !s.blind {
		return nil, errConflict
	}
	if s.older {
		spec.SeenEpoch = 0
	}
	next := old.DeepCopy()
	if next.Spec = spec; reflect.DeepEqual(old.Spec, spec) {
		return old, nil
	}
	next.Generation++
	s.writes["spec"]++
	return s.keepNetwork(next), nil
}

// writeStatus replaces a status.
func (s *store) writeStatus(n *crd.NodeNetwork) (*crd.NodeNetwork, error) {
	old := s.network(n.Name)
	switch {
	case old == nil || old.UID != n.UID:
		return nil, errNotFound
	case old.ResourceVersion != n.ResourceVersion && !s.blind:
		return nil, errConflict
	}
	was, _ := old.Status.Read()
	is, err := n.Status.Read()
	switch {
	case err != nil:
		s.wrong("%s: a status that can't be read: %v", n.Name, err)
	case is.Epoch < was.Epoch:
		return nil, errConflict
	case !order.Follows(was, is) && !s.blind:
		s.wrong("%s: revision %d with %+v follows revision %d with %+v", n.Name, is.Revision, is, was.Revision, was)
	}
	next := old.DeepCopy()
	next.Status = n.DeepCopy().Status
	if reflect.DeepEqual(old.Status, next.Status) && !s.blind {
		s.wrong("%s: the operator writes what is there", n.Name)
	}
	kind := "status"
	if sameButDescribed(old.Status, next.Status) {
		kind = "describedAt"
	}
	s.writes[kind]++
	return s.keepNetwork(next), nil
}

func sameButDescribed(a, b crd.NodeNetworkStatus) bool {
	a.DescribedAt = b.DescribedAt
	return reflect.DeepEqual(a, b)
}

// endNetwork begins the end of an object, which waits for its finalizers.
func (s *store) endNetwork(name string, now time.Time) {
	old := s.network(name)
	if old == nil || old.DeletionTimestamp != nil {
		return
	}
	if len(old.Finalizers) == 0 {
		s.keep(networkKey(name), nil)
		return
	}
	next := old.DeepCopy()
	next.DeletionTimestamp = &metav1.Time{Time: now}
	s.keepNetwork(next)
}

// names returns the names of all objects of a kind.
func (s *store) names(kind string) (list []string) {
	for key := range s.objects {
		if name, is := strings.CutPrefix(key, kind+" "); is {
			list = append(list, name)
		}
	}
	return list
}

// backup is what a store had at a time.
type backup struct {
	at      time.Time
	version int
	objects map[string]any
	lease   *coordinationv1.Lease
}

func (s *store) save() backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return backup{time.Now(), s.version, maps.Clone(s.objects), s.lease}
}

// restore puts a backup back: versions go on from there, or from above all that there were. All watches break off. Nodes are what they are:
// who makes them makes those again.
func (s *store) restore(b backup, above bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.objects {
		if !strings.HasPrefix(key, "node ") {
			delete(s.objects, key)
		}
	}
	if !above {
		s.version = b.version
	}
	for key, o := range b.objects {
		switch o := o.(type) {
		case *crd.NodeNetwork:
			if o = o.DeepCopy(); above {
				o.ResourceVersion = s.nextVersion()
			}
			s.objects[key] = o
		case *crd.Subnet:
			if o = o.DeepCopy(); above {
				o.ResourceVersion = s.nextVersion()
			}
			s.objects[key] = o
		}
	}
	if s.lease = b.lease; s.lease != nil && above {
		s.lease = s.lease.DeepCopy()
		s.lease.ResourceVersion = s.nextVersion()
	}
	s.log, s.dropped = nil, s.dropped+len(s.log)
	for w := range s.watches {
		s.cut(w)
	}
}
