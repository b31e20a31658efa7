package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
	"github.com/enipool/enipool/pkg/operator/claims"
	"github.com/enipool/enipool/pkg/operator/classify"
	"github.com/enipool/enipool/pkg/topology"
)

// topologyRights returns what an operator needs for topologies, and what it has besides. This API server begins a watch with all there is; a list of
// what is only watched is for those that do not.
func topologyRights(t *testing.T) (needed, more []right) {
	more = rightsIn(t, "operator/account.yaml")
	for _, r := range rightsIn(t, "topologies/account.yaml") {
		if r.verb == "list" && r.resource == "addressclaims" {
			more = append(more, r)
		} else {
			needed = append(needed, r)
		}
	}
	return needed, more
}

// classify does what an operator does for topologies.
func (b *bed) classify(ctx context.Context, u *user) error {
	t := &crd.PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: u.name}, Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "s"}}, Strategy: crd.Strategy{Type: "Elastic"}}}
	if err := b.kinds.Create(ctx, t); err != nil {
		return err
	}
	if err := b.addGated(ctx, u.name, "first"); err != nil {
		return err
	}
	o, err := NewTopologies(u.config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := b.tellAll(ctx, u, o); err != nil {
		return err
	}
	if _, err := o.ReadTopologies(ctx); err != nil {
		return err
	}
	if list, err := o.ReadNamespaces(ctx, []string{u.name, "nowhere"}); err != nil || len(list) != 1 || list[0].Name != u.name || list[0].UID == "" || list[0].Version == "" {
		return fmt.Errorf("namespaces: %+v, %w", list, err)
	}
	many := []string{u.name}
	for i := range mostNamed {
		many = append(many, fmt.Sprint("nowhere-", i))
	}
	if list, err := o.ReadNamespaces(ctx, many); err != nil || len(list) != 1 || list[0].Name != u.name {
		return fmt.Errorf("of all namespaces: %+v, %w", list, err)
	}
	if err := b.kinds.Get(ctx, client.ObjectKey{Name: u.name}, t); err != nil {
		return err
	}
	if err := o.WriteTopology(ctx, t); err != nil {
		return err
	}
	if err := o.PatchPod(ctx, u.name, "first", []classify.Operation{{Op: "remove", Path: "/spec/schedulingGates/0"}}); err != nil {
		return err
	}
	return b.claim(ctx, u, Claims{o})
}

// claim does what an operator does for a claim.
func (b *bed) claim(ctx context.Context, u *user, o Claims) error {
	var n int
	if _, err := fmt.Sscanf(u.name, "topologies-%d", &n); err != nil {
		return err
	}
	object, err := crd.NewAddressClaim(topology.Claim{Addr: netip.AddrFrom4([4]byte{10, 1, 0, byte(n + 1)}), Topology: "t", Subnet: "s", Namespace: u.name, Pod: "p", Keep: topology.Fixed,
		StatefulSet: topology.Workload{Name: "set", UID: "1"}})
	if err != nil {
		return err
	}
	object.Finalizers = []string{claims.Finalizer}
	if object, err = o.CreateClaim(ctx, object); err != nil {
		return err
	}
	if _, err := o.CreateClaim(ctx, &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: object.Name}, Spec: object.Spec}); !errors.Is(err, operator.ErrConflict) {
		return fmt.Errorf("a second claim of the address: %w", err)
	}
	object.Status.Phase, object.Status.FreeSince = "Free", &metav1.Time{Time: time.Now()}
	if object, err = o.WriteClaim(ctx, object); err != nil {
		return err
	}
	if err := o.DeleteClaim(ctx, object); err != nil {
		return err
	}
	if object, err = o.ReadClaim(ctx, object.Name); err != nil || object.DeletionTimestamp == nil {
		return fmt.Errorf("after its deletion began: %v, %w", object, err)
	}
	if err := o.DropClaim(ctx, object); err != nil {
		return err
	}
	if _, err := o.ReadClaim(ctx, object.Name); !errors.Is(err, operator.ErrGone) && ctx.Err() == nil {
		return fmt.Errorf("after its finalizer has gone: %w", err)
	}
	if _, err := o.ReadPod(ctx, claims.Name{Namespace: u.name, Name: "first"}); err != nil {
		return err
	}
	_, err = o.ReadSets(ctx)
	return err
}

func (b *bed) addGated(ctx context.Context, namespace, name string) error {
	return b.kinds.Create(ctx, pod(namespace, name, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: classify.Gate}} }))
}

// tellAll watches until all there was has been told of and then a change of each kind.
func (b *bed) tellAll(ctx context.Context, u *user, o *Topologies) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	told, begun := map[string]bool{}, make(chan struct{}, 2)
	go func() {
		for range 2 { // the pods, and all else
			select {
			case <-begun:
			case <-watching.Done():
				return
			}
		}
		if b.changeAll(watching, u) != nil {
			stop()
		}
	}()
	var changes int
	o.Watch(watching, func(e classify.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Listed != nil || e.Complete {
			if told[fmt.Sprint(e.Complete)] = true; changes < 2 {
				changes++
				begun <- struct{}{}
			}
			return
		}
		switch {
		case e.Pod != nil && e.Pod.Namespace == u.name && e.Pod.Name == "second":
			told["pod"] = true
		case e.Namespace != nil && e.Namespace.Labels["changed"] == u.name:
			told["namespace"] = true
		case e.Claim != nil && e.Claim.Spec.Namespace == u.name:
			told["claim"] = true
		case e.Topology && changes == 2:
			told["topology"] = true
		}
		if len(told) == 6 {
			stop()
		}
	})
	return ctx.Err()
}

// changeAll changes something of each kind.
func (b *bed) changeAll(ctx context.Context, u *user) error {
	label := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"labels": {"changed": %q}}}`, u.name))
	for _, o := range []client.Object{&corev1.Namespace{}, &crd.PodSubnetTopology{}} {
		o.SetName(u.name)
		if err := b.kinds.Patch(ctx, o, label); err != nil {
			return err
		}
	}
	var n int
	if _, err := fmt.Sscanf(u.name, "topologies-%d", &n); err != nil {
		return err
	}
	address := fmt.Sprint("10.0.0.", n+100)
	claim := &crd.AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: address}, Spec: crd.ClaimSpec{Topology: "t", Subnet: "s", Address: address, Namespace: u.name, Pod: "p", Keep: "TTL", TTL: "1h"}}
	if err := b.kinds.Create(ctx, claim); err != nil {
		return err
	}
	return b.addGated(ctx, u.name, "second")
}
