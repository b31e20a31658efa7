package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/enipool/enipool/pkg/health"
)

const (
	// patience is how long one request to the API server may take.
	patience = 10 * time.Second
	// pace is how often more is written for the same report, because pods came and went
	// or somebody else wants it otherwise, after the first few times, which are quick:
	// every write goes to all who watch nodes.
	pace  = 5 * time.Second
	quick = 3
)

// retry is how long a write waits after it failed: from a second to half a minute.
var retry = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 30 * time.Second}

// keeper brings the Node object to what was reported, and back when others change
// what is ours.
type keeper struct {
	view     *view
	server   api
	events   *events
	log      *slog.Logger
	mayTaint bool
	slice    *Devices // that tells the scheduler of addresses, nil: the Node does

	mu       sync.Mutex
	want     *health.Report
	withheld bool // the cluster is to know nothing of the node any more
	network  *Network

	own    *corev1.Node  // the node as our last write left it
	done   health.Report // the last one that was written
	room   *room
	again  *rate.Limiter // of writes that follow on the same report
	failed string        // the last error
	said   bool          // it is in the log

	insists insistence
}

func newKeeper(v *view, server api, e *events, options Options) *keeper {
	return &keeper{view: v, server: server, events: e, log: options.Log, mayTaint: options.Taint, room: newRoom(), again: rate.NewLimiter(rate.Every(pace), quick)}
}

func (k *keeper) report(r health.Report) {
	k.mu.Lock()
	changed := k.want == nil || *k.want != r
	k.want = &r
	k.mu.Unlock()
	if changed {
		signalChange(k.view.moved)
	}
}

// reportNetwork says whether pods can have networks.
func (k *keeper) reportNetwork(w Network) {
	k.mu.Lock()
	changed := k.network == nil || *k.network != w
	k.network = &w
	k.mu.Unlock()
	if changed {
		signalChange(k.view.moved)
	}
}

// withhold says whether the node's condition and taint are to go, whatever is reported.
func (k *keeper) withhold(is bool) {
	k.mu.Lock()
	changed := k.withheld != is
	k.withheld = is
	k.mu.Unlock()
	if changed {
		signalChange(k.view.moved)
	}
}

// run compares what is with what was reported whenever one of them changes.
func (k *keeper) run(ctx context.Context) {
	backoff, moved := retry, (<-chan struct{})(k.view.moved)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-timer.C:
		}
		again, err := k.writeDue(ctx)
		k.logFailure(err)
		moved = k.view.moved
		if err == nil {
			backoff = retry
		} else {
			again, moved = backoff.Step(), nil // however often the node changes meanwhile
		}
		timer.Stop()
		if again > 0 {
			timer.Reset(again)
		}
	}
}

// logFailure logs what goes wrong twice in the same way: the first time it may be that
// somebody else was faster. That the API server is away, or does not know the agent, the link
// says. Of what is forbidden only the words tell whether a role lacks a right or an admission
// policy or webhook said no; of what fails, which webhook does not answer. That there is no room for
// a write is told too when it lasts: all else may have room.
func (k *keeper) logFailure(err error) {
	text := ""
	if err != nil && (!isPassing(err) || apierrors.IsInternalError(err) || apierrors.IsTooManyRequests(err)) && !apierrors.IsUnauthorized(err) {
		text = err.Error()
	}
	switch {
	case text != k.failed:
		k.failed, k.said = text, false
	case text != "" && !k.said:
		k.log.Warn("the node's condition, taint or capacity can't be written", "error", err)
		k.said = true
	}
}

// writeDue does what is to do. If it is to wait with that it returns how long.
func (k *keeper) writeDue(ctx context.Context) (time.Duration, error) {
	k.mu.Lock()
	want, withheld := k.want, k.withheld
	k.mu.Unlock()
	node, ok := k.newestNode()
	switch {
	case !ok:
		return 0, nil
	case withheld:
		return 0, k.takeOff(ctx, node)
	case want == nil:
		return 0, nil
	}
	status, due := k.statusPatch(node, *want)
	p := patches{status, taintPatch(node.Spec.Taints, want.Taint && k.mayTaint)}
	if p.empty() {
		return due, nil
	}
	// A new report goes at once; what pods and other writers bring about after it is paced.
	if k.done == *want {
		if early := k.insists.wait(p, time.Now()); early > 0 {
			return early, nil
		}
		turn := k.again.Reserve()
		if early := turn.Delay(); early > 0 {
			turn.Cancel()
			return early, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := k.writePatches(ctx, node, p.status, p.taint); err != nil {
		return 0, err
	}
	k.done = *want
	if times, tell := k.insists.wrote(p, time.Now()); tell {
		k.log.Warn("what is written to the Node is undone each time; look for a controller that keeps the node's taints or status, or a webhook that changes them",
			"what", partsOf(p), "times", times)
	}
	return due, nil
}

// takeOff removes condition and taint from the node. The resource stays: pods that ask for it would fit
// on no node of a cluster whose agents are all told to be silent.
func (k *keeper) takeOff(ctx context.Context, node *corev1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if conditionOf(node).Type != "" {
		if err := k.sendPatch(ctx, "status", types.StrategicMergePatchType, json.RawMessage(noCondition), "status"); err != nil {
			return err
		}
		node = k.own
	}
	if taint := taintPatch(node.Spec.Taints, false); taint != nil {
		return k.sendPatch(ctx, "taints", types.JSONPatchType, taint)
	}
	return nil
}

// newestNode returns the node as it is watched, or as our last write left it if the
// watch has not come that far. A cluster that was brought back to an earlier state has lost that write.
func (k *keeper) newestNode() (*corev1.Node, bool) {
	if k.view.wentBack() {
		k.own = nil
	}
	node, ok := k.view.readNode()
	if ok && k.own != nil && older(node.ResourceVersion, k.own.ResourceVersion) {
		return k.own, true
	}
	return node, ok
}

// statusPatch returns what of the node's status is to change, and after how long more may be
// though nothing moves, 0 for never.
func (k *keeper) statusPatch(node *corev1.Node, want health.Report) (patch statusPatch, due time.Duration) {
	now := metav1.Now()
	was := conditionOf(node)
	if is := conditionFor(want, was, now); !sameCondition(was, is) {
		patch.Status.Conditions = []corev1.NodeCondition{is}
	}
	k.mu.Lock()
	network := k.network
	k.mu.Unlock()
	if network != nil {
		was := findCondition(node, NetworkReady)
		if is := network.condition(was, now); !sameCondition(was, is) {
			patch.Status.Conditions = append(patch.Status.Conditions, is)
		}
	}
	if load, known := k.view.currentLoad(); known && want.Capacity >= 0 {
		counts, after := true, time.Duration(0)
		if k.slice != nil {
			counts, after = k.slice.leavesIt(now.Time)
			patch.noResource = k.slice.shown() && showsResource(node)
		}
		if !counts {
			load.asked, load.silent = load.reserved, load.unreserved
		}
		var n int
		n, due = k.room.numberToShow(now.Time, want.Capacity, load, node)
		if !counts {
			k.slice.setTotal(n)
		}
		if after > 0 && (due == 0 || after < due) {
			due = after
		}
		if counts && !offersNumber(node, n) {
			patch.Status.Capacity, patch.Status.Allocatable = resourceQuantity(n), resourceQuantity(n)
		}
	}
	return patch, due
}

// writePatches sends the patches. A taint is added before there is more room for the
// scheduler, and removed after that.
func (k *keeper) writePatches(ctx context.Context, node *corev1.Node, status statusPatch, taint []operation) error {
	sendTaint := func() error {
		if taint == nil {
			return nil
		}
		return k.sendPatch(ctx, "taints", types.JSONPatchType, taint)
	}
	sendStatus := func() error {
		if status.empty() {
			return nil
		}
		err := error(nil)
		if status.noResource {
			err = k.sendPatch(ctx, "status", types.StrategicMergePatchType, json.RawMessage(noResource), "status")
		}
		if err == nil && !status.keepsAll() {
			err = k.sendPatch(ctx, "status", types.StrategicMergePatchType, status, "status")
		}
		for _, is := range status.Status.Conditions {
			if err == nil && is.Type == Condition {
				k.postCondition(node, is)
			}
		}
		return err
	}
	if removesTaint(taint) {
		return errors.Join(sendStatus(), sendTaint())
	}
	return errors.Join(sendTaint(), sendStatus())
}

// sendPatch sends a patch of the node, of a subresource if one is named, and keeps the node that it made.
func (k *keeper) sendPatch(ctx context.Context, what string, kind types.PatchType, patch any, subresource ...string) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	node, err := k.server.patchNode(ctx, k.view.node, kind, data, subresource...)
	if err != nil {
		return fmt.Errorf("patch the %s of the node: %w", what, err)
	}
	k.own = strippedNode(node)
	return nil
}

// postCondition writes an event when a fault begins, gets another reason, or ends.
func (k *keeper) postCondition(node *corev1.Node, is corev1.NodeCondition) {
	was := conditionOf(node)
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	begun := was.Status == corev1.ConditionTrue
	switch {
	case is.Status == corev1.ConditionTrue && (!begun || was.Reason != is.Reason):
		k.events.queueEvent(event{about: about, kind: corev1.EventTypeWarning, reason: is.Reason, message: is.Message})
	case is.Status == corev1.ConditionFalse && begun:
		lasted := max(0, is.LastTransitionTime.Sub(was.LastTransitionTime.Time)).Round(time.Second) // of a clock that may be set
		k.events.queueEvent(event{about: about, kind: corev1.EventTypeNormal, reason: is.Reason, message: fmt.Sprintf("%s; %s lasted %s", is.Message, was.Reason, lasted)})
	}
}
