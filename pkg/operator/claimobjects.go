package operator

import (
	"context"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
)

// ClaimObjects is a cluster's API server, as much as the life of claims needs of it. What Objects says of errors and of what is returned holds here too.
type ClaimObjects interface {
	// WatchClaims tells of all claims, topologies and pods of topologies that there are, and then of changes, until ctx ends.
	WatchClaims(ctx context.Context, tell func(claims.Event))

	// ReadPod returns a pod, and not from a cache, nil if there is none. It may be of no topology.
	ReadPod(ctx context.Context, of claims.Name) (*claims.Pod, error)

	// ReadSets returns which StatefulSets there are, and not from a cache.
	ReadSets(ctx context.Context) ([]claims.Name, error)

	// CreateClaim makes an object. ErrConflict: there is one of the address.
	CreateClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error)
	ReadClaim(ctx context.Context, name string) (*crd.AddressClaim, error)

	// WriteClaim writes a status with the object's resourceVersion.
	WriteClaim(ctx context.Context, c *crd.AddressClaim) (*crd.AddressClaim, error)

	// DeleteClaim begins to delete an object, if it is the one of this uid. DropClaim takes its finalizer.
	DeleteClaim(ctx context.Context, c *crd.AddressClaim) error
	DropClaim(ctx context.Context, c *crd.AddressClaim) error
}
