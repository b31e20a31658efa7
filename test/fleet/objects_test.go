package fleet

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// objects are the API server's as one process of an operator has them.
type objects struct{ p *process }

// write is a request that changes something: the process may be stopped or killed before it and after it.
func (o objects) write(ctx context.Context, what, key string, f func() error) error {
	if err := o.p.effect(what, false); err != nil {
		return err
	}
	err := o.p.w.store.request(ctx, key, f)
	if gone := o.p.effect(what, true); gone != nil {
		return gone
	}
	switch {
	case errors.Is(err, errConflict):
		return fmt.Errorf("%w: %w", operator.ErrConflict, err)
	case errors.Is(err, errNotFound):
		return fmt.Errorf("%w: %w", operator.ErrGone, err)
	}
	return err
}

func (o objects) read(ctx context.Context, f func()) error {
	if err := o.p.pass(); err != nil {
		return err
	}
	err := o.p.w.store.read(ctx, f)
	return errors.Join(err, o.p.pass())
}

// ReadAll implements operator.Objects.
func (o objects) ReadAll(ctx context.Context) (all operator.Cluster, err error) {
	s := o.p.w.store
	err = o.read(ctx, func() {
		for _, of := range s.objects {
			switch of := of.(type) {
			case *crd.NodeNetwork:
				all.Networks = append(all.Networks, of)
			case *crd.Subnet:
				all.Subnets = append(all.Subnets, of)
			case *operator.Node:
				all.Nodes = append(all.Nodes, *of)
			}
		}
	})
	return all, err
}

// Watch implements operator.Objects.
func (o objects) Watch(ctx context.Context, tell func(operator.Event)) {
	o.p.w.store.inform(ctx, o.p.pass, tell)
}

// ReadNode implements operator.Objects.
func (o objects) ReadNode(ctx context.Context, name string) (n *crd.NodeNetwork, err error) {
	err = o.read(ctx, func() { n = o.p.w.store.network(name) })
	if err == nil && n == nil {
		err = operator.ErrGone
	}
	return n, err
}

// WriteNode implements operator.Objects.
func (o objects) WriteNode(ctx context.Context, n *crd.NodeNetwork) (written *crd.NodeNetwork, err error) {
	err = o.write(ctx, writesStatus, networkKey(n.Name), func() (err error) {
		written, err = o.p.w.store.writeStatus(n)
		if o.p.w.traced("%s: status of %s from %s: %v", o.p.name, n.Name, n.ResourceVersion, err); err == nil {
			for _, e := range n.Status.ENIs {
				o.p.w.traced("  %s %d %s %s has %v", n.Name, n.Status.Revision, e.ID, e.State, e.Addresses)
			}
			o.p.w.traced("  releasing %v %v, quarantined %v; release %v", n.Status.Releasing, n.Status.LeavingInterfaces, n.Status.Quarantined, n.Spec.Release)
		}
		return err
	})
	return written, err
}

// writesStatus is the effect of a status write.
const writesStatus = "WriteStatus"

// DropFinalizer implements operator.Objects.
func (o objects) DropFinalizer(ctx context.Context, n *crd.NodeNetwork) error {
	s := o.p.w.store
	return o.write(ctx, "DropFinalizer", networkKey(n.Name), func() error {
		switch old := s.network(n.Name); {
		case old == nil || old.UID != n.UID:
			return errNotFound
		case old.ResourceVersion != n.ResourceVersion:
			return errConflict
		}
		s.keep(networkKey(n.Name), nil)
		return nil
	})
}

// CreateSubnet implements operator.Objects.
func (o objects) CreateSubnet(ctx context.Context, n *crd.Subnet) (made *crd.Subnet, err error) {
	s := o.p.w.store
	err = o.write(ctx, "CreateSubnet", subnetKey(n.Name), func() error {
		if s.objects[subnetKey(n.Name)] != nil {
			return errConflict
		}
		if s.kindless {
			return errServer
		}
		s.writes["subnet"]++
		made = s.keepSubnet(n.DeepCopy())
		return nil
	})
	return made, err
}

// WriteSubnet implements operator.Objects.
func (o objects) WriteSubnet(ctx context.Context, n *crd.Subnet) (written *crd.Subnet, err error) {
	s := o.p.w.store
	err = o.write(ctx, "WriteSubnet", subnetKey(n.Name), func() error {
		old, _ := s.objects[subnetKey(n.Name)].(*crd.Subnet)
		switch {
		case old == nil:
			return errNotFound
		case old.ResourceVersion != n.ResourceVersion:
			return errConflict
		}
		next := old.DeepCopy()
		next.Status = n.DeepCopy().Status
		s.writes["subnet"]++
		written = s.keepSubnet(next)
		return nil
	})
	return written, err
}

// leases is the lease of the operators as one process of them has it.
type leases struct {
	coordinationclient.LeaseInterface // of which an election needs three methods
	p                                 *process
}

// Leases implements coordinationclient.LeasesGetter.
func (l leases) Leases(string) coordinationclient.LeaseInterface { return l }

var leaseKind = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l leases) request(ctx context.Context, writes string, f func() error) error {
	if err := l.p.pass(); err != nil {
		return err
	}
	err := l.p.w.store.request(ctx, writes, f)
	if gone := l.p.pass(); gone != nil {
		return gone
	}
	if errors.Is(err, errConflict) {
		return apierrors.NewConflict(leaseKind, "enipool-operator", err)
	}
	return err
}

// Get implements coordinationclient.LeaseInterface.
func (l leases) Get(ctx context.Context, name string, _ metav1.GetOptions) (got *coordinationv1.Lease, err error) {
	err = l.request(ctx, "", func() error {
		if got = l.p.w.store.lease; got == nil {
			return apierrors.NewNotFound(leaseKind, name)
		}
		got = got.DeepCopy()
		return nil
	})
	return got, err
}

// Create implements coordinationclient.LeaseInterface.
func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (made *coordinationv1.Lease, err error) {
	err = l.request(ctx, "lease", func() error {
		if l.p.w.store.lease != nil {
			return apierrors.NewAlreadyExists(leaseKind, lease.Name)
		}
		made = l.keep(lease)
		return nil
	})
	return made, err
}

// Update implements coordinationclient.LeaseInterface.
func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (written *coordinationv1.Lease, err error) {
	err = l.request(ctx, "lease", func() error {
		switch old := l.p.w.store.lease; {
		case old == nil:
			return apierrors.NewNotFound(leaseKind, lease.Name)
		case old.ResourceVersion != lease.ResourceVersion:
			return errConflict
		}
		written = l.keep(lease)
		return nil
	})
	return written, err
}

// keep keeps a version of the lease. The caller holds the store's lock.
func (l leases) keep(lease *coordinationv1.Lease) *coordinationv1.Lease {
	next := lease.DeepCopy()
	next.ResourceVersion = l.p.w.store.nextVersion()
	l.p.w.store.lease = next
	return next.DeepCopy()
}
