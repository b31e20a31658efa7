package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/enipool/enipool/pkg/operator"
)

var leaseKind = schema.GroupResource{Resource: "leases"}

// store has a lease in each namespace.
type store struct {
	mu        sync.Mutex
	version   int
	of        map[string]coordinationv1.Lease
	forbidden bool
}

func (s *store) Leases(namespace string) coordinationclient.LeaseInterface {
	return inNamespace{s: s, namespace: namespace}
}

func (s *store) list(context.Context) (list []coordinationv1.Lease, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forbidden {
		return nil, apierrors.NewForbidden(leaseKind, "", nil)
	}
	for _, l := range s.of {
		list = append(list, *l.DeepCopy())
	}
	return list, nil
}

func (s *store) put(namespace string, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.version++
	next := *l.DeepCopy()
	next.Namespace, next.ResourceVersion = namespace, strconv.Itoa(s.version)
	s.of[namespace] = next
	return next.DeepCopy(), nil
}

type inNamespace struct {
	coordinationclient.LeaseInterface
	s         *store
	namespace string
}

func (n inNamespace) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	l, there := n.s.of[n.namespace]
	if !there {
		return nil, apierrors.NewNotFound(leaseKind, n.namespace)
	}
	return l.DeepCopy(), nil
}

func (n inNamespace) Create(_ context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	return n.s.put(n.namespace, l)
}

func (n inNamespace) Update(_ context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	if n.s.of[n.namespace].ResourceVersion != l.ResourceVersion {
		return nil, apierrors.NewConflict(leaseKind, l.Name, nil)
	}
	return n.s.put(n.namespace, l)
}

// stands is an operator of a namespace that stands for election.
type stands struct {
	election Election
	log      bytes.Buffer
	cancel   context.CancelFunc
	ended    chan struct{}
}

// leading counts who leads.
type leading struct {
	mu   sync.Mutex
	now  []string
	most int
}

func (l *leading) lead(name string) func(context.Context, operator.Lead) error {
	return func(ctx context.Context, _ operator.Lead) error {
		l.mu.Lock()
		l.now = append(l.now, name)
		l.most = max(l.most, len(l.now))
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, is := range l.now {
			if is == name {
				l.now = append(l.now[:i:i], l.now[i+1:]...)
			}
		}
		return ctx.Err()
	}
}

// who returns who leads.
func (l *leading) who() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.now, " and ")
}

func (s *store) stand(t *testing.T, namespace string, l *leading) *stands {
	o := &stands{ended: make(chan struct{})}
	o.election = Election{Client: s, Namespace: namespace, Name: "enipool-operator", Identity: namespace + "-1", Duration: 15 * time.Second,
		Log: slog.New(slog.NewTextHandler(&o.log, nil)), All: s.list}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(t.Context())
	go func() {
		defer close(o.ended)
		_ = o.election.Run(ctx, l.lead(namespace))
	}()
	return o
}

func (o *stands) stop() {
	o.cancel()
	<-o.ended
}

// Two Deployments in two namespaces have two leases: one operator leads, the other says what is wrong and stands by until it may.
func TestOfOperatorsInTwoNamespacesOneLeads(t *testing.T) {
	for name, apart := range map[string]time.Duration{"at once": 0, "within a moment": 3 * time.Second, "an hour later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l := &store{of: map[string]coordinationv1.Lease{}}, &leading{}
				first := s.stand(t, "kube-system", l)
				time.Sleep(apart)
				second := s.stand(t, "enipool", l)
				time.Sleep(5 * time.Minute)
				leader := l.who()
				for range 360 {
					if time.Sleep(10 * time.Second); l.who() != leader {
						t.Fatalf("%s leads after %s", l.who(), leader)
					}
				}
				one, other := first, second
				if leader == "enipool" {
					one, other = second, first
				}
				if l.most != 1 || leader == "" {
					t.Errorf("%d led at once, at the end %q", l.most, leader)
				}
				one.stop()
				time.Sleep(time.Minute)
				if l.who() != other.election.Namespace {
					t.Errorf("%q leads after %s has ended", l.who(), leader)
				}
				other.stop()
				if said := other.log.String(); strings.Count(said, leader+"-1 leads this cluster by a Lease in namespace "+leader) < 1 || strings.Count(said, "level=ERROR") > 4 {
					t.Errorf("the other says:\n%s", said)
				}
			})
		})
	}
}

// An operator of another namespace that was killed holds its lease for ever by name: its time is over.
func TestALeaseOfAKilledOperatorElsewhereEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &store{of: map[string]coordinationv1.Lease{}}, &leading{}
		who := "killed"
		_, _ = s.put("enipool", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "enipool-operator"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &who}})
		o := s.stand(t, "kube-system", l)
		time.Sleep(10 * time.Second)
		if l.who() != "" {
			t.Error("it leads while the other may")
		}
		time.Sleep(20 * time.Second)
		if l.who() == "" {
			t.Error("nobody leads")
		}
		o.stop()
		if strings.Contains(o.log.String(), "ERROR") {
			t.Error(o.log.String())
		}
	})
}

// A role of an earlier release does not allow to list leases: its operator leads, and says so once.
func TestAnOperatorThatMayNotListLeasesLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := &store{of: map[string]coordinationv1.Lease{}, forbidden: true}, &leading{}
		o := s.stand(t, "kube-system", l)
		time.Sleep(time.Minute)
		if l.who() == "" {
			t.Error("nobody leads")
		}
		o.stop()
		if said := o.log.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "ClusterRole enipool-operator") {
			t.Error(said)
		}
	})
}
