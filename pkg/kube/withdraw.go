package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withdrawal is the strategic merge patch that takes the condition and the resource
// off a node's status, whether they are there or not. The resource goes and does not
// become 0: a kubelet forgives pods that asked for what its node does not know.
const withdrawal = `{"status":{"capacity":{"` + string(Resource) + `":null},"allocatable":{"` + string(Resource) + `":null},` +
	`"conditions":[{"type":"` + string(Condition) + `","$patch":"delete"}]}}`

// settling is how long what failed waits before it is tried again.
const settling = time.Second

// Withdraw takes off the Node object what agents wrote there, and returns in a few
// words what that was. It needs no right that an agent does not have. An API server
// that is away is waited for until ctx ends. No agent may run on the node any more:
// it would write all of it again.
func Withdraw(ctx context.Context, o Options) (removed []string, err error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("withdraw from the cluster: %w", err)
	}
	c, _, err := connect(rest.CopyConfig(o.Config))
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	var last error
	for {
		now, err := withdraw(ctx, c, o.Node)
		removed = append(removed, now...)
		if err == nil {
			return removed, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // that the time is up does not say why
		}
		switch err = last; {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), !sleep(ctx, settling):
			return removed, fmt.Errorf("withdraw from the cluster: %w", err)
		}
	}
}

// withdraw tries it once.
func withdraw(ctx context.Context, c client.Client, name string) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// A list, for which the agent has the right, and not a get, for which it has none.
	var list corev1.NodeList
	if err := c.List(ctx, &list, client.MatchingFields{"metadata.name": name}); err != nil || len(list.Items) == 0 {
		return nil, err // a Node that is gone shows nothing
	}
	node := &list.Items[0]
	if what := shown(node); len(what) > 0 {
		if err := c.Status().Patch(ctx, named(name), client.RawPatch(types.StrategicMergePatchType, []byte(withdrawal))); err != nil {
			return nil, fmt.Errorf("patch the status of the node: %w", err)
		}
		removed = what
	}
	// The taint goes last: it keeps pods off that did not ask for an address.
	if patch := taintPatch(node.Spec.Taints, false); patch != nil {
		text, err := json.Marshal(patch)
		if err == nil {
			err = c.Patch(ctx, named(name), client.RawPatch(types.JSONPatchType, text))
		}
		if err != nil { // which it is when somebody else changed the taints just now
			return removed, fmt.Errorf("patch the taints of the node: %w", err)
		}
		removed = append(removed, "taint "+Taint)
	}
	return removed, nil
}

// shown names what of ours a node's status has.
func shown(node *corev1.Node) (what []string) {
	if conditionOf(node).Type != "" {
		what = append(what, "condition "+string(Condition))
	}
	_, capacity := node.Status.Capacity[Resource]
	if _, allocatable := node.Status.Allocatable[Resource]; capacity || allocatable {
		what = append(what, "resource "+string(Resource))
	}
	return what
}

func named(node string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}} }

// ByHand returns the commands that do what Withdraw does, for people.
func ByHand(node string) []string {
	return []string{
		fmt.Sprintf("kubectl patch node %s --subresource=status --type=strategic --patch='%s'", node, withdrawal),
		fmt.Sprintf("kubectl taint node %s %s:%s-", node, Taint, ourTaint.Effect),
	}
}
