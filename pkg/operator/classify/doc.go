// Package classify takes the gate off new pods: it says to which topology a pod belongs and in which zones it can run, and writes that on
// the pod before any node gets it. What it decides is the word of package topology.
//
// A pod with the gate waits, whatever happens here; one without is never touched. DESIGN.md of package topology says what is done with a
// pod afterwards.
package classify

import (
	"context"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// Gate is the scheduling gate of a pod that waits to be classified. The label and the annotation that name its topology have the same name.
const Gate = "enipool.io/topology"

// Objects is a cluster's API server, as much as is needed of it here.
type Objects interface {
	// Watch tells of everything there is and then of changes, until ctx ends. The newest state of each object comes in the end.
	Watch(ctx context.Context, tell func(Event))

	// ReadTopologies returns all that there are, and not from a cache.
	ReadTopologies(ctx context.Context) ([]*crd.PodSubnetTopology, error)

	// ReadNamespaces returns those of the namespaces that there are, and not from a cache.
	ReadNamespaces(ctx context.Context, names []string) ([]Namespace, error)

	// PatchPod patches a pod. ErrConflict: a test of the patch fails, since it is another pod by now or was changed. ErrGone: there is none.
	PatchPod(ctx context.Context, namespace, name string, patch []Operation) error

	// WriteTopology writes a status with the object's resourceVersion. ErrConflict: another version is there by now.
	WriteTopology(ctx context.Context, t *crd.PodSubnetTopology) error
}

// The errors of Objects that are told apart.
var (
	ErrConflict = operator.ErrConflict
	ErrGone     = operator.ErrGone
)

// Event is a change of one object, as it is after it.
type Event struct {
	Pod       *Pod // Deleted: it is gone, or has no gate any more
	Namespace *Namespace
	Subnet    *crd.Subnet
	Claim     *crd.AddressClaim
	Topology  bool // one of them changed
	Deleted   bool

	Listed   *[]Pod // all pods that have the gate: others have it no more
	Complete bool   // all namespaces, subnets and claims that there were have been told of
}
