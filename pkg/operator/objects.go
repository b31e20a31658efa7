package operator

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// Objects is a cluster's API server, as much as the operator needs of it. Objects that it returns and tells of
// are not changed afterwards by anybody.
type Objects interface {
	// ReadAll returns everything, and not from a cache.
	ReadAll(ctx context.Context) (Cluster, error)

	// Watch tells of changes until ctx ends. It may lag, and tell the same thing twice or what is older than what
	// ReadAll or a write has returned; but the newest state of each object comes in the end.
	Watch(ctx context.Context, tell func(Event))

	// ReadNode returns an object, and not from a cache. ErrGone: there is none.
	ReadNode(ctx context.Context, name string) (*crd.NodeNetwork, error)

	// WriteNode writes a status with the object's resourceVersion, and returns the object as it is then.
	// ErrConflict: another version is there by now, or an operator with a later epoch has written. ErrGone: there is none any
	// more. After any other error nobody knows whether it was written.
	WriteNode(ctx context.Context, n *crd.NodeNetwork) (*crd.NodeNetwork, error)

	// DropFinalizer takes Finalizer from an object, which ends it. The errors are those of WriteNode.
	DropFinalizer(ctx context.Context, n *crd.NodeNetwork) error

	// WriteSubnet is WriteNode for a Subnet, and CreateSubnet makes one. One that is there is ErrConflict.
	WriteSubnet(ctx context.Context, s *crd.Subnet) (*crd.Subnet, error)
	CreateSubnet(ctx context.Context, s *crd.Subnet) (*crd.Subnet, error)
}

// Watcher is an Objects that knows whether its watch works.
type Watcher interface {
	// Silent returns since when Watch could tell of no changes and why, or nil while it can.
	Silent() (since time.Time, why error)
}

// The errors of Objects that the operator tells apart.
var (
	ErrConflict = errors.New("another version is there")
	ErrGone     = errors.New("there is no such object")
)

// Cluster is all objects of a cluster.
type Cluster struct {
	Nodes    []Node
	Networks []*crd.NodeNetwork
	Subnets  []*crd.Subnet
}

// Event is a change of one object, as it is after it.
type Event struct {
	Node    *Node
	Network *crd.NodeNetwork
	Subnet  *crd.Subnet
	Deleted bool
}

// Node is what the operator takes from a Node object, which no agent may write.
type Node struct {
	Name     string
	Instance string // from the provider ID, "" as long as there is none
	Type     string
	Zone     string
	Labels   map[string]string
	Agent    bool // an agent of enipool tells on the Node how its pool is
	Cut      bool // the cluster does not reach it: its kubelet tells nothing any more, or there is no Node
}

// isSame tells whether another copy says the same.
func (n Node) isSame(m Node) bool {
	return n.Name == m.Name && n.Instance == m.Instance && n.Type == m.Type && n.Zone == m.Zone && n.Agent == m.Agent && n.Cut == m.Cut && maps.Equal(n.Labels, m.Labels)
}

// InstanceOf returns the instance that a provider ID names, the last part of it: "aws:///eu-west-3a/i-0abc", "cce://i-abc".
func InstanceOf(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// Clock is how time passes for the operator. A simulation brings its own. Now has a monotonic reading, or the clock is
// never set.
type Clock interface {
	Now() time.Time
	// Sleep returns when d has passed, when wake gets something, or when ctx ends.
	Sleep(ctx context.Context, wake <-chan struct{}, d time.Duration)
}

// Wall is the machine's Clock.
type Wall struct{}

// Now returns the machine's time.
func (Wall) Now() time.Time { return time.Now() }

// Sleep implements Clock.
func (Wall) Sleep(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}

// Lead is the lease by which an operator leads, for one term.
type Lead struct {
	Epoch    int64     // that is written on the lease
	Acquired time.Time // when it was got
	// Renewed returns when the last renewal was sent that was done. All calls go by it.
	Renewed func() time.Time
	// Number writes the term's epoch on the lease, with the lease's resourceVersion.
	Number func(ctx context.Context, epoch int64) error
	// Held ends when the lease may be another's, and with it all that is under way. What Run's own context ends is a term whose
	// lease is held on for as long as Run takes: what was sent gets its answer. nil: both are one.
	Held context.Context
}
