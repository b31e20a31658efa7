package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
)

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("uid-%d", n)) }

// place returns the path of the object that a request is about, and its subresource.
func place(r *http.Request) (at, sub string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")[2:]
	if strings.HasPrefix(r.URL.Path, "/apis/") { // and a group
		parts = parts[1:]
	}
	if parts[0] == "namespaces" {
		return strings.Join(append([]string{parts[2], parts[1]}, parts[3:]...), "/"), ""
	}
	if len(parts) > 2 {
		sub = parts[2]
	}
	return strings.Join(parts[:2], "/"), sub
}

func (c *cluster) create(r *http.Request, body []byte) *http.Response {
	if kindOf(r.URL.Path) == networks {
		return c.createNetwork(r, body)
	}
	var e corev1.Event
	if err := json.Unmarshal(body, &e); err != nil {
		return c.failure(r, apierrors.NewBadRequest(err.Error()))
	}
	if c.objects[path(&e)] != nil {
		return c.failure(r, apierrors.NewAlreadyExists(corev1.Resource("events"), e.Name))
	}
	return c.answer(r, http.StatusCreated, c.store(path(&e), &e))
}

func (c *cluster) patch(r *http.Request, body []byte) *http.Response {
	at, sub := place(r)
	if c.onPatch != nil {
		c.onPatch(at + "/" + sub)
	}
	was := c.objects[at]
	if was == nil {
		return c.failure(r, apierrors.NewNotFound(corev1.Resource("x"), at))
	}
	is := was.DeepCopyObject().(client.Object)
	if err := apply(r.Header.Get("Content-Type"), body, was, is); err != nil {
		return c.failure(r, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), at, nil))
	}
	if n, ok := is.(*corev1.Node); ok { // each endpoint writes its half
		if old := was.(*corev1.Node); sub == "status" {
			n.Spec, n.ObjectMeta = old.Spec, old.ObjectMeta
		} else {
			n.Status = old.Status
		}
		if twice(n.Spec.Taints) {
			return c.failure(r, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), at, nil))
		}
	}
	if n, ok := is.(*crd.NodeNetwork); ok {
		old := was.(*crd.NodeNetwork)
		if n.ResourceVersion != old.ResourceVersion {
			return c.failure(r, apierrors.NewConflict(schema.GroupResource{Resource: networks}, n.Name, nil))
		}
		if c.keepsOwners && !reflect.DeepEqual(n.OwnerReferences, old.OwnerReferences) {
			return c.failure(r, apierrors.NewInvalid(schema.GroupKind{Kind: "NodeNetwork"}, n.Name, nil))
		}
		owners := n.OwnerReferences
		n.Status, n.ObjectMeta = old.Status, old.ObjectMeta
		n.OwnerReferences = owners
		if !reflect.DeepEqual(n.Spec, old.Spec) {
			n.Generation++
		}
	}
	return c.answer(r, http.StatusOK, c.store(at, is))
}

func (c *cluster) createNetwork(r *http.Request, body []byte) *http.Response {
	var n crd.NodeNetwork
	if err := json.Unmarshal(body, &n); err != nil {
		return c.failure(r, apierrors.NewBadRequest(err.Error()))
	}
	if c.objects[path(&n)] != nil {
		return c.failure(r, apierrors.NewAlreadyExists(schema.GroupResource{Resource: networks}, n.Name))
	}
	n.Generation = 1
	return c.answer(r, http.StatusCreated, c.store(path(&n), &n))
}

func twice(taints []corev1.Taint) bool {
	seen := map[string]bool{}
	for _, t := range taints {
		if seen[t.Key+string(t.Effect)] {
			return true
		}
		seen[t.Key+string(t.Effect)] = true
	}
	return false
}

func apply(kind string, patch []byte, was, is client.Object) error {
	data, err := json.Marshal(was)
	if err != nil {
		return err
	}
	switch types.PatchType(kind) {
	case types.StrategicMergePatchType:
		data, err = strategicpatch.StrategicMergePatch(data, patch, is)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(patch); err == nil {
			data, err = p.Apply(data)
		}
	default:
		err = fmt.Errorf("unknown patch type %s", kind)
	}
	if err != nil {
		return err
	}
	switch o := is.(type) {
	case *corev1.Node:
		*o = corev1.Node{}
	case *corev1.Event:
		*o = corev1.Event{}
	case *crd.NodeNetwork:
		*o = crd.NodeNetwork{}
	}
	return json.Unmarshal(data, is)
}

// theNode returns the node as the server has it.
func (c *cluster) theNode() *corev1.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := c.objects["nodes/"+here].(*corev1.Node)
	return n.DeepCopy()
}

// told returns the events in the order they were created, each as one line.
func (c *cluster) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	order := map[string]int{}
	for _, h := range c.history {
		e, ok := h.to.(*corev1.Event)
		if !ok {
			continue
		}
		about := e.InvolvedObject
		line := fmt.Sprintf("%s %s %s/%s(%s) %s: %s", e.Type, about.Kind, about.Namespace, about.Name, about.UID, e.Reason, e.Message)
		if e.Count > 1 {
			line += fmt.Sprintf(" x%d", e.Count)
		}
		if i, known := order[h.path]; known {
			lines[i] = line
			continue
		}
		order[h.path] = len(lines)
		lines = append(lines, line)
	}
	return lines
}

// calls counts the requests of a method that came through.
func (c *cluster) calls(method string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		if s.method == method {
			n++
		}
	}
	return n
}

const here = "node-1"

// pod is a pod as the scheduler leaves it.
func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
}
