package operator_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/topology"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claimStore is an API server's pods, StatefulSets, topologies and claims in memory. What its watches tell comes late and twice.
type claimStore struct {
	w *world

	mu         sync.Mutex
	version    int
	pods       map[claims.Name]claims.Pod
	sets       []claims.Name
	topologies map[string]*crd.PodSubnetTopology
	claims     map[string]*crd.AddressClaim
	watches    map[*func(claims.Event)]bool
	calls      int
	written    int
	heard      []string
	passes     func(what string) // is called before each write
	lag        time.Duration
	prunes     bool // the kinds are older than the operator
	byName     bool // plugins of an earlier release: a pod gets what any topology keeps for its name
}

func (w *world) withTopologies(list ...*crd.PodSubnetTopology) *claimStore {
	s := &claimStore{w: w, pods: map[claims.Name]claims.Pod{}, topologies: map[string]*crd.PodSubnetTopology{}, claims: map[string]*crd.AddressClaim{}, watches: map[*func(claims.Event)]bool{}}
	for _, t := range list {
		s.topologies[t.Name] = t
	}
	w.claims = s
	return s
}

// topologyOf returns one of ranges of subnets.
func topologyOf(name, kind, ttl, subnet, from, to string) *crd.PodSubnetTopology {
	t := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: subnet}}, Strategy: crd.Strategy{Type: kind, TTL: ttl}}}
	if from != "" {
		t.Spec.Subnets[0].Ranges = []crd.Range{{From: from, To: to}}
	}
	return t
}

func (s *claimStore) hear(n operator.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, fmt.Sprintf("%s/%s %s: %s", n.Namespace, n.Name, n.Reason, n.Message))
}

// tell tells the watches. The caller holds the lock.
func (s *claimStore) tell(e claims.Event) {
	for tell := range s.watches {
		go func() {
			time.Sleep(s.lag)
			(*tell)(e)
			(*tell)(e)
		}()
	}
}

func (s *claimStore) WatchClaims(ctx context.Context, tell func(claims.Event)) {
	s.mu.Lock()
	s.calls++
	s.watches[&tell] = true
	var pods []claims.Pod
	for _, p := range s.pods {
		if p.Topology != "" {
			pods = append(pods, p)
		}
	}
	for _, t := range s.topologies {
		tell(claims.Event{Topology: t.DeepCopy()})
	}
	for _, c := range s.claims {
		tell(claims.Event{Claim: c.DeepCopy()})
	}
	s.mu.Unlock()
	tell(claims.Event{Complete: true})
	tell(claims.Event{Pods: &pods})
	tell(claims.Event{Pods: &pods})
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, &tell)
}

func (s *claimStore) ReadPod(_ context.Context, of claims.Name) (*claims.Pod, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, is := s.pods[of]; is {
		return &p, nil
	}
	return nil, nil
}

func (s *claimStore) ReadSets(context.Context) ([]claims.Name, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sets), nil
}

// begin is before each write.
func (s *claimStore) begin(ctx context.Context, what string) error {
	s.mu.Lock()
	passes := s.passes
	s.mu.Unlock()
	if passes != nil {
		passes(what)
	}
	return ctx.Err()
}

// keep keeps a version and tells of it. The caller holds the lock.
func (s *claimStore) keep(c *crd.AddressClaim) *crd.AddressClaim {
	s.version++
	s.written++
	c.ResourceVersion = fmt.Sprint(s.version)
	s.claims[c.Name] = c
	s.tell(claims.Event{Claim: c.DeepCopy()})
	return c.DeepCopy()
}

func (s *claimStore) CreateClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error) {
	if err := s.begin(ctx, "create"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[c.Name] != nil {
		return nil, operator.ErrConflict
	}
	made := c.DeepCopy()
	made.UID, made.Status = types.UID(fmt.Sprint("claim-", s.version)), crd.ClaimStatus{}
	return s.keep(made), nil
}

func (s *claimStore) ReadClaim(_ context.Context, name string) (*crd.AddressClaim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.claims[name]; c != nil {
		return c.DeepCopy(), nil
	}
	return nil, operator.ErrGone
}

func (s *claimStore) WriteClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error) {
	if err := s.begin(ctx, "write "+c.Status.Phase); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.claims[c.Name]
	switch {
	case old == nil:
		return nil, operator.ErrGone
	case old.ResourceVersion != c.ResourceVersion:
		return nil, operator.ErrConflict
	case reflect.DeepEqual(old.Status, c.Status):
		return old.DeepCopy(), nil
	}
	next := old.DeepCopy()
	if next.Status = c.DeepCopy().Status; s.prunes {
		next.Status.ToInterface = ""
	}
	return s.keep(next), nil
}

func (s *claimStore) DeleteClaim(ctx context.Context, c *crd.AddressClaim) error {
	if err := s.begin(ctx, "delete"); err != nil {
		return err
	}
	s.endClaim(c.Name)
	return nil
}

// endClaim begins to delete a claim, as people do.
func (s *claimStore) endClaim(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.claims[name]; old != nil && old.DeletionTimestamp == nil {
		next := old.DeepCopy()
		next.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		s.keep(next)
	}
}

func (s *claimStore) DropClaim(ctx context.Context, c *crd.AddressClaim) error {
	if err := s.begin(ctx, "drop"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.claims[c.Name]
	switch {
	case old == nil || old.UID != c.UID:
		return operator.ErrGone
	case old.ResourceVersion != c.ResourceVersion:
		return operator.ErrConflict
	}
	s.written++
	delete(s.claims, c.Name)
	s.tell(claims.Event{Claim: old.DeepCopy(), Deleted: true})
	return nil
}

// claim returns the one of a pod's name, nil if there is none.
func (s *claimStore) claim(pod string) *crd.AddressClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.Spec.Pod == pod {
			return c.DeepCopy()
		}
	}
	return nil
}

// run puts a pod on a node: another one of the name is gone by then.
func (s *claimStore) run(name, node, of string) {
	s.stop(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	p := claims.Pod{Name: claims.Name{Namespace: "db", Name: name}, UID: fmt.Sprint("pod-", s.version), Node: node, Topology: of, StatefulSet: topology.Workload{Name: "db", UID: "set"}}
	if s.pods[p.Name] = p; of != "" {
		s.tell(claims.Event{Pod: &p})
	}
}

// stop ends a pod.
func (s *claimStore) stop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := claims.Name{Namespace: "db", Name: name}
	if p, is := s.pods[of]; is {
		delete(s.pods, of)
		s.tell(claims.Event{Pod: &p, Deleted: true})
	}
}

func (s *claimStore) setSets(list ...claims.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = list
}

func (s *claimStore) onNode(node string) (list []claims.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if p.Node == node && !p.Ended {
			list = append(list, p)
		}
	}
	return list
}

// runBoxes ends the sandboxes of pods that are gone, and gives those that are new what is kept for them.
func (a *agent) runBoxes(v order.View) {
	if a.w.claims == nil {
		return
	}
	pods, has := a.w.claims.onNode(a.name), map[string]bool{}
	for at, uid := range a.boxes {
		if !slices.ContainsFunc(pods, func(p claims.Pod) bool { return p.UID == uid }) {
			delete(a.boxes, at)
		}
		has[uid] = true
	}
	for _, p := range pods {
		for _, r := range v.Status.Reserved {
			held := slices.ContainsFunc(a.state.Addresses, func(line eni.Address) bool {
				_, general := a.state.FreeSince(&line, a.w.since())
				return line.Addr == r.Addr && !general && line.State != eni.Used && line.State != eni.Releasing
			})
			mine := r.Topology == p.Topology || p.Topology == "" || a.w.claims.byName
			if held && mine && !has[p.UID] && a.boxes[r.Addr] == "" && r.Namespace == p.Namespace && r.Pod == p.Name.Name && (r.UID == p.UID || r.UID == "") {
				a.boxes[r.Addr], has[p.UID] = p.UID, true
			}
		}
	}
}

// addressOf returns the address that a pod has, and on which node.
func (s *claimStore) addressOf(name string) (at netip.Addr, node string) {
	s.mu.Lock()
	uid := s.pods[claims.Name{Namespace: "db", Name: name}].UID
	s.mu.Unlock()
	for _, a := range s.w.agents {
		a.mu.Lock()
		for addr, of := range a.boxes {
			if of == uid && uid != "" {
				at, node = addr, a.name
			}
		}
		a.mu.Unlock()
	}
	return at, node
}

// runs tells whether a pod has an address on a node, and the cloud has it there.
func (s *claimStore) runs(name, node string) bool {
	at, on := s.addressOf(name)
	return on == node && s.w.places()[at] == node
}

// checkBoxes tells of pods that have what is elsewhere, and of addresses that two have.
func (s *claimStore) checkBoxes() {
	on, has := s.w.places(), map[netip.Addr]string{}
	for _, a := range s.w.agents {
		a.mu.Lock()
		for at, uid := range a.boxes {
			there := slices.ContainsFunc(s.onNode(a.name), func(p claims.Pod) bool { return p.UID == uid })
			if there && on[at] != a.name {
				s.w.complain("%s on %s has %s, which is on %q", uid, a.name, at, on[at])
			}
			if there && has[at] != "" {
				s.w.complain("%s is of %s and of %s", at, uid, has[at])
			}
			if there {
				has[at] = uid
			}
		}
		a.mu.Unlock()
	}
}

// wait lets time pass, and looks after the pods meanwhile.
func (s *claimStore) wait(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		s.checkBoxes()
	}
}
