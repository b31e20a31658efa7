package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// withdrawal is the strategic merge patch that takes the conditions and the resource
// off a node's status, whether they are there or not. The resource goes and does not
// become 0: a kubelet forgives pods that asked for what its node does not know.
const withdrawal = `{"status":{"capacity":{"` + string(Resource) + `":null},"allocatable":{"` + string(Resource) + `":null},` +
	`"conditions":[{"type":"` + string(Condition) + `","$patch":"delete"},{"type":"` + string(NetworkReady) + `","$patch":"delete"}]}}`

// noResource is the one that takes off the resource alone, once devices stand for it.
const noResource = `{"status":{"capacity":{"` + string(Resource) + `":null},"allocatable":{"` + string(Resource) + `":null}}}`

// noCondition is the one that takes off what tells of a fault alone: a node that can serve pods can do so without that.
const noCondition = `{"status":{"conditions":[{"type":"` + string(Condition) + `","$patch":"delete"}]}}`

// withdrawRetry is how long what failed waits before it is tried again.
const withdrawRetry = time.Second

// Withdraw takes off the Node object what agents wrote there, and returns in a few
// words what that was. It needs no right that an agent does not have. An API server
// that is away is waited for until ctx ends. No agent may run on the node any more:
// it would write all of it again.
func Withdraw(ctx context.Context, options Options) (removed []string, err error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("withdraw from the cluster: %w", err)
	}
	server, err := newAPI(rest.CopyConfig(options.Config))
	if err != nil {
		return nil, fmt.Errorf("prepare to talk to the API server: %w", err)
	}
	var last error
	for {
		now, err := withdrawOnce(ctx, server, options.Node)
		removed = append(removed, now...)
		if err == nil {
			return removed, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // that the time is up does not say why
		}
		switch err = last; {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), !waitFor(ctx, withdrawRetry):
			return removed, fmt.Errorf("withdraw from the cluster: %w", err)
		}
	}
}

// withdrawOnce tries it once.
func withdrawOnce(ctx context.Context, server api, name string) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := server.findNode(ctx, name)
	if err != nil || len(list) == 0 {
		return nil, err // a Node that is gone shows nothing
	}
	node := &list[0]
	if what := shownOn(node); len(what) > 0 {
		if _, err := server.patchNode(ctx, name, types.StrategicMergePatchType, []byte(withdrawal), "status"); err != nil {
			return nil, fmt.Errorf("patch the status of the node: %w", err)
		}
		removed = what
	}
	// The taint goes last: it keeps pods off that did not ask for an address.
	if patch := taintPatch(node.Spec.Taints, false); patch != nil {
		text, err := json.Marshal(patch)
		if err == nil {
			_, err = server.patchNode(ctx, name, types.JSONPatchType, text)
		}
		if err != nil { // which it is when somebody else changed the taints just now
			return removed, fmt.Errorf("patch the taints of the node: %w", err)
		}
		removed = append(removed, "taint "+Taint)
	}
	return removed, nil
}

// shownOn names what of ours a node's status has.
func shownOn(node *corev1.Node) (what []string) {
	for _, kind := range []corev1.NodeConditionType{Condition, NetworkReady} {
		if findCondition(node, kind).Type != "" {
			what = append(what, "condition "+string(kind))
		}
	}
	if showsResource(node) {
		what = append(what, "resource "+string(Resource))
	}
	return what
}

// ResourceByHand returns the command that takes off the resource and the condition, for people.
func ResourceByHand(node string) string { return ByHand(node)[0] }

// ByHand returns the commands that do what Withdraw does, for people.
func ByHand(node string) []string {
	return []string{
		fmt.Sprintf("kubectl patch node %s --subresource=status --type=strategic --patch='%s'", node, withdrawal),
		fmt.Sprintf("kubectl taint node %s %s:%s-", node, Taint, ourTaint.Effect),
	}
}
