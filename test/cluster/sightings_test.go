package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// sighting is a pod and when this machine's clock first saw it so.
type sighting struct {
	*corev1.Pod            // as it was last
	bound, ready time.Time // zero: not yet
}

// sightings are the pods of the namespace default as they come and go.
type sightings struct {
	mu   sync.Mutex
	all  map[types.UID]*sighting // gone ones too
	here map[types.UID]bool
	bad  []string // what must never be
}

// watchPods watches until the test ends.
func watchPods(c *cluster) *sightings {
	s := &sightings{all: map[types.UID]*sighting{}, here: map[types.UID]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(c.api, 0, informers.WithNamespace("default"))
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.see(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { s.see(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) { s.lose(o) },
	})
	c.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	c.t.Cleanup(func() {
		cancel()
		factory.Shutdown()
		for _, what := range s.bad {
			c.t.Error(what)
		}
	})
	return s
}

func (s *sightings) see(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.all[p.UID]
	if is == nil {
		is = &sighting{}
		s.all[p.UID] = is
	}
	is.Pod, s.here[p.UID] = p, true
	if is.bound.IsZero() && p.Spec.NodeName != "" {
		is.bound = time.Now()
	}
	if is.ready.IsZero() && isReady(p) {
		is.ready = time.Now()
	}
	if !hasAddress(p) {
		return
	}
	for uid := range s.here {
		if other := s.all[uid].Pod; uid != p.UID && hasAddress(other) && other.Status.PodIP == p.Status.PodIP {
			s.bad = append(s.bad, fmt.Sprintf("pods %s and %s both have %s", p.Name, other.Name, p.Status.PodIP))
		}
	}
}

func (s *sightings) lose(o any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.here {
		if p := s.all[uid].Pod; err == nil && p.Namespace+"/"+p.Name == key {
			delete(s.here, uid)
		}
	}
}

// now returns the pods that there are, by name.
func (s *sightings) now() []sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []sighting
	for uid := range s.here {
		list = append(list, *s.all[uid])
	}
	slices.SortFunc(list, func(a, b sighting) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// hasAddress tells whether the pod has an address of its own that nobody else may
// have. The status of one that is ending may be older than its end.
func hasAddress(p *corev1.Pod) bool {
	return p.Status.PodIP != "" && !p.Spec.HostNetwork && p.DeletionTimestamp == nil &&
		(p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning)
}

// address is the pod's.
func (s sighting) address() netip.Addr {
	a, _ := netip.ParseAddr(s.Status.PodIP)
	return a
}
