package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

const (
	// The rates of events: of one object 5 at once and then one in 5 minutes; of all together as much as the API server does not notice
	// when thousands of nodes are refused at once. What is too much is dropped: metrics count it, and the objects tell it.
	burst     = 5
	perObject = 1.0 / 300
	ofAll     = 5
	mostAtOne = 50

	component = "enipool-operator"
)

// Events writes events of objects, beside all else.
type Events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// NewEvents returns what writes events with requests of its own. Close ends it.
func NewEvents(config *rest.Config) (*Events, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = ofAll, mostAtOne
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to write events: %w", err)
	}
	b := record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{BurstSize: burst, QPS: perObject}))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: set.CoreV1().Events("")})
	return &Events{b, b.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: component})}, nil
}

// Close ends the writing of events. Those that wait are lost.
func (e *Events) Close() { e.broadcaster.Shutdown() }

// Recorder returns what the election tells of the lease with.
func (e *Events) Recorder() record.EventRecorder { return e.recorder }

// Tell writes an event, soon or not at all. It does not block.
func (e *Events) Tell(n operator.Notice) {
	kind := corev1.EventTypeNormal
	if n.Warning {
		kind = corev1.EventTypeWarning
	}
	about := &corev1.ObjectReference{APIVersion: crd.GroupVersion.String(), Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, UID: types.UID(n.UID)}
	if n.Kind == "Pod" {
		about.APIVersion = "v1"
	}
	e.recorder.Event(about, kind, n.Reason, n.Message)
}
