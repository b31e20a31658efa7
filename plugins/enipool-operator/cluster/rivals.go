package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// ListLeases returns what lists the leases of operators in all namespaces, for Election.All. It goes by their name: one may have no label.
func ListLeases(client coordinationclient.LeasesGetter, name string) func(context.Context) ([]coordinationv1.Lease, error) {
	return func(ctx context.Context) ([]coordinationv1.Lease, error) {
		list, err := client.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
}

// rivals watches the leases by which operators of other namespaces lead. Two leases would be two leaders of one cluster, each of which ends the
// other's terms by a later number.
type rivals struct {
	Election
	seen map[string]sighting // by namespace
	said string              // what was logged last
}

// sighting is since when a lease has been of a version.
type sighting struct {
	version string
	at      time.Time
}

// rival is a lease that somebody holds, as far as is known.
type rival struct {
	namespace, holder string
	renews            bool // it has changed while it was watched
}

// noteLeases takes in a list of leases and returns the first rival, nil if there is none. A lease that does not change for as long as it lasts is held by
// nobody any more. Only the time that passes here counts: clocks of others may differ.
func (r *rivals) noteLeases(list []coordinationv1.Lease, now time.Time) (found *rival) {
	next := map[string]sighting{}
	for i := range list {
		l := &list[i]
		if l.Name != r.Name || l.Namespace == r.Namespace || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
			continue
		}
		before, known := r.seen[l.Namespace]
		renews := known && before.version != l.ResourceVersion
		if !known || renews {
			before = sighting{l.ResourceVersion, now}
		}
		next[l.Namespace] = before
		if now.Sub(before.at) < r.Duration && (found == nil || renews && !found.renews) {
			found = &rival{l.Namespace, *l.Spec.HolderIdentity, renews}
		}
	}
	r.seen = next
	return found
}

// awaitNone returns once no operator of another namespace leads, or ctx ends. Where the leases can't be listed the term's begin says so.
func (r *rivals) awaitNone(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := r.listRivals(ctx)
		if err != nil || found == nil {
			return
		}
		pause := retryPeriod
		if found.renews {
			r.logOnce(slog.LevelError, found.Error())
			pause = renewDeadline // that may last, and each list goes through the leases of all nodes
		}
		waitFor(ctx, pause+rand.N(pause/2)) // all who stand by would find each other else
	}
}

// refuseTerm returns why a term that has its lease does not begin: an operator of another namespace has its own, as one that took it at the same time.
func (r *rivals) refuseTerm(ctx context.Context) error {
	found, err := r.listRivals(ctx)
	if err != nil {
		return fmt.Errorf("look for operators in other namespaces: %w", err)
	}
	if found == nil {
		return nil
	}
	return found
}

// listRivals lists the leases. Roles of before do not allow that: their operators lead without.
func (r *rivals) listRivals(ctx context.Context) (*rival, error) {
	if r.All == nil {
		return nil, nil
	}
	list, err := r.All(ctx)
	if apierrors.IsForbidden(err) {
		r.logOnce(slog.LevelWarn, fmt.Sprintf("whether another operator leads this cluster from another namespace can't be seen; the ClusterRole enipool-operator allows it (conf/kubernetes/operator): %v", err))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r.noteLeases(list, time.Now()), nil
}

func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// logOnce logs what was not logged last.
func (r *rivals) logOnce(level slog.Level, text string) {
	if r.said != text {
		r.said = text
		r.Log.Log(context.Background(), level, text)
	}
}

func (r *rival) Error() string {
	return fmt.Sprintf("%s leads this cluster by a Lease in namespace %s: this operator stands by as long as that is held. A cluster has one Deployment of operators: delete one, or give both the same namespace in operator.yaml",
		r.holder, r.namespace)
}
