package kube

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/record/util"

	"github.com/enipool/enipool/pkg/eni"
)

const (
	component = "enipool-agent"
	// backlog is how many events wait for the API server: one for each pod of a node.
	backlog = 256
	// burst and refill limit the writes about one object: a pod without an address is
	// tried again every few seconds, for hours.
	burst  = 3
	refill = 1.0 / 300
	// failures is how often an event is tried that the API server fails to write though it
	// answers: a webhook of one namespace does not answer, and others wait.
	failures = 3
	// maxMessage is what the API takes as the text of an event.
	maxMessage = 1024
)

// event is one thing to tell about an object.
type event struct {
	about                 corev1.ObjectReference
	kind, reason, message string
	at                    time.Time // when it happened; it may wait for the API server
}

// events writes events one after the other, beside everything else.
type events struct {
	node       string
	server     api
	log        *slog.Logger
	queue      chan event
	correlator *record.EventCorrelator
}

func newEvents(node string, server api, log *slog.Logger) *events {
	return &events{node, server, log, make(chan event, backlog), record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		LRUCacheSize: 2 * backlog, BurstSize: burst, QPS: refill,
	})}
}

func podReference(p eni.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}
}

// queueEvent queues an event, or drops it if too many wait.
func (e *events) queueEvent(ev event) {
	ev.at = time.Now()
	select {
	case e.queue <- ev:
	default:
		e.log.Debug("too many events wait for the API server; one is dropped", "name", ev.about.Name, "reason", ev.reason)
	}
}

// run writes events until ctx ends.
func (e *events) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-e.queue:
			e.deliverEvent(ctx, e.newObject(ev))
		}
	}
}

// newObject is an event as the API has it. Events about a node, which has no namespace,
// lie in the default one.
func (e *events) newObject(ev event) *corev1.Event {
	now, namespace := ev.at, ev.about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: util.GenerateEventName(ev.about.Name, now.UnixNano())},
		InvolvedObject:      ev.about,
		Type:                ev.kind,
		Reason:              ev.reason,
		Message:             strings.ToValidUTF8(ev.message[:min(len(ev.message), maxMessage)], ""),
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Count:               1,
		Source:              corev1.EventSource{Component: component, Host: e.node},
		ReportingController: component,
		ReportingInstance:   e.node,
	}
}

// deliverEvent writes one event. It waits for an API server that is away: nothing else
// can be told meanwhile. One that answers may take others.
func (e *events) deliverEvent(ctx context.Context, ev *corev1.Event) {
	r, err := e.correlator.EventCorrelate(ev)
	if err == nil && r.Skip {
		return
	}
	failed := 0
	for backoff := retry; err == nil; {
		if err = e.writeEvent(ctx, r); err == nil {
			return
		}
		if apierrors.IsInternalError(err) {
			failed++
		}
		if isPassing(err) && failed < failures && waitFor(ctx, backoff.Step()) {
			err = nil
		}
	}
	e.log.Debug("an event was not written", "name", ev.InvolvedObject.Name, "reason", ev.Reason, "error", err)
}

// writeEvent creates an event, or counts up the one that says the same already.
func (e *events) writeEvent(ctx context.Context, r *record.EventCorrelateResult) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if len(r.Patch) > 0 {
		err := e.server.patchEvent(ctx, r.Event, r.Patch)
		if !apierrors.IsNotFound(err) { // events live for an hour
			return err
		}
	}
	return e.server.createEvent(ctx, r.Event)
}

// waitFor waits, and reports whether it waited to the end.
func waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// isPassing reports whether an error is likely to go away by itself.
func isPassing(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return true
	}
	code := answer.Status().Code
	return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
}
