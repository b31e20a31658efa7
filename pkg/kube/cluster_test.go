package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/kube/crd"
)

// cluster is a small API server in memory, with its whole history. It is reached as
// a RoundTripper, so that it works where time is virtual.
type cluster struct {
	mu      sync.Mutex
	history []change
	objects map[string]client.Object // by path, as they are now
	served  int                      // a replica that lags shows the history up to here
	lagging bool                     // it does not follow by itself
	floor   int                      // watches can't begin before
	moved   chan struct{}            // closed when there is more to show
	cuts    chan struct{}            // closed to end all watches

	down        error // no connection
	hang        bool  // no answer
	status      int   // answered to everything, 0: none
	forbid      string
	kindless    bool   // it has no kinds of enipool's own
	keepsOwners bool   // nobody changes who an object belongs to
	garbage     bool   // the next watch event is broken
	twice       bool   // watches send each event twice
	swapped     bool   // what watches send together about different objects they send in the opposite order
	seen        []call // all requests that came through
	sent        int    // bytes of answers
	uids        int
	onPatch     func(path string) // runs before a patch is applied
	lastAuth    string
}

// change is one write: from and to are nil for what was created and deleted.
type change struct {
	path     string
	from, to client.Object
}

type call struct{ method, path, query string }

// newCluster makes a cluster that is older than anything in it: a resource version of
// 0 stands for any state.
func newCluster() *cluster {
	return &cluster{history: []change{{path: "none"}}, served: 1, objects: map[string]client.Object{}, moved: make(chan struct{}), cuts: make(chan struct{})}
}

func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: "http://cluster", Transport: c, ContentConfig: rest.ContentConfig{ContentType: "application/json"}, QPS: -1}
}

func path(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "pods/" + o.GetNamespace() + "/" + o.GetName()
	case *corev1.Node:
		return "nodes/" + o.GetName()
	case *crd.NodeNetwork:
		return networks + "/" + o.GetName()
	}
	return "events/" + o.GetNamespace() + "/" + o.GetName()
}

// put creates or replaces an object.
func (c *cluster) put(o client.Object) client.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store(path(o), o.DeepCopyObject().(client.Object))
}

func (c *cluster) store(at string, o client.Object) client.Object {
	if o != nil {
		o.SetResourceVersion(strconv.Itoa(len(c.history) + 1))
		if o.GetUID() == "" {
			c.uids++
			o.SetUID(uidOf(c.uids))
		}
		if p, ok := o.(*corev1.Pod); ok {
			p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		} else if n, ok := o.(*corev1.Node); ok {
			n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
		} else if e, ok := o.(*corev1.Event); ok {
			e.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
		} else if n, ok := o.(*crd.NodeNetwork); ok {
			n.TypeMeta = metav1.TypeMeta{APIVersion: crd.GroupVersion.String(), Kind: "NodeNetwork"}
		}
	}
	c.history = append(c.history, change{at, c.objects[at], o})
	if o == nil {
		delete(c.objects, at)
	} else {
		c.objects[at] = o
	}
	if !c.lagging {
		c.show(len(c.history))
	}
	return o
}

// show moves what is served.
func (c *cluster) show(to int) {
	c.served = to
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *cluster) remove(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[at] != nil {
		c.store(at, nil)
	}
}

// do changes the server under its lock.
func (c *cluster) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// cut ends all watches.
func (c *cluster) cut() {
	close(c.cuts)
	c.cuts = make(chan struct{})
}

// at returns the objects of a kind after the first n changes, sorted.
func (c *cluster) at(n int, kind string, match func(client.Object) bool) []client.Object {
	now := map[string]client.Object{}
	for _, h := range c.history[:n] {
		if h.to == nil {
			delete(now, h.path)
		} else if strings.HasPrefix(h.path, kind+"/") {
			now[h.path] = h.to
		}
	}
	var list []client.Object
	for _, k := range slices.Sorted(maps.Keys(now)) {
		if match(now[k]) {
			list = append(list, now[k])
		}
	}
	return list
}

// RoundTrip answers one request.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hang {
		c.mu.Unlock()
		<-r.Context().Done()
		c.mu.Lock()
		return nil, r.Context().Err()
	}
	if c.down != nil {
		return nil, c.down
	}
	c.lastAuth = r.Header.Get("Authorization")
	c.seen = append(c.seen, call{r.Method, r.URL.Path, r.URL.RawQuery})
	if c.status != 0 {
		return c.answer(r, c.status, &metav1.Status{Status: "Failure", Code: int32(c.status), Message: http.StatusText(c.status)}), nil
	}
	if c.forbid != "" && r.Method+" "+kindOf(r.URL.Path) == c.forbid {
		return c.failure(r, apierrors.NewForbidden(corev1.Resource(kindOf(r.URL.Path)), "x", fmt.Errorf("no role allows it"))), nil
	}
	switch r.Method {
	case http.MethodGet:
		if c.kindless && strings.HasPrefix(r.URL.Path, "/apis/"+crd.GroupVersion.Group) {
			return c.failure(r, apierrors.NewNotFound(corev1.Resource(networks), "")), nil
		}
		return c.get(r), nil
	case http.MethodPost:
		return c.create(r, body), nil
	case http.MethodPatch:
		return c.patch(r, body), nil
	}
	return c.failure(r, apierrors.NewBadRequest("unknown method")), nil
}

func (c *cluster) answer(r *http.Request, status int, o any) *http.Response {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	c.sent += len(data)
	return &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)),
	}
}

func (c *cluster) failure(r *http.Request, err error) *http.Response {
	s := err.(apierrors.APIStatus).Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return c.answer(r, int(s.Code), &s)
}

// refuse is failure for those who stand before the cluster and do not hold its lock.
func (c *cluster) refuse(r *http.Request, err error) *http.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure(r, err)
}

// filter makes a match of a field selector.
func filter(text string) func(client.Object) bool {
	selector := fields.ParseSelectorOrDie(text)
	return func(o client.Object) bool {
		set := fields.Set{"metadata.name": o.GetName()}
		if p, ok := o.(*corev1.Pod); ok {
			set["spec.nodeName"], set["status.phase"] = p.Spec.NodeName, string(p.Status.Phase)
		}
		return o != nil && selector.Matches(set)
	}
}

// get lists or watches.
func (c *cluster) get(r *http.Request) *http.Response {
	q := r.URL.Query()
	kind, match := kindOf(r.URL.Path), filter(q.Get("fieldSelector"))
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	if q.Has("sendInitialEvents") { // costs too much, see listedFirst
		return c.failure(r, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil))
	}
	if from > c.served {
		late := apierrors.NewTimeoutError("Too large resource version", 1)
		late.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return c.failure(r, late)
	}
	upTo := c.served
	if q.Get("resourceVersion") == "" {
		upTo = len(c.history) // the most recent state there is
	}
	if q.Get("watch") == "" {
		items := c.at(upTo, kind, match)
		version := "v1"
		if kind == networks {
			version = crd.GroupVersion.String()
		}
		return c.answer(r, http.StatusOK, map[string]any{
			"kind": map[string]string{"pods": "PodList", "nodes": "NodeList", networks: "NodeNetworkList"}[kind], "apiVersion": version,
			"metadata": map[string]string{"resourceVersion": strconv.Itoa(upTo)}, "items": items,
		})
	}
	read, write := io.Pipe()
	w := &watcher{cluster: c, out: write, kind: kind, match: match, next: from}
	if from < c.floor {
		gone := apierrors.NewResourceExpired("too old resource version").Status()
		w.queue("ERROR", &gone)
		w.over = true
	}
	go w.run(r.Context(), c.cuts)
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: read}
}

// watcher streams changes to one client.
type watcher struct {
	cluster *cluster
	out     *io.PipeWriter
	kind    string
	match   func(client.Object) bool
	next    int // changes before it were sent
	pending bytes.Buffer
	over    bool
}

func (w *watcher) queue(kind string, o any) {
	data, err := json.Marshal(map[string]any{"type": kind, "object": o})
	if err != nil {
		panic(err)
	}
	w.cluster.sent += len(data)
	w.pending.Write(data)
}

// sent is an event of a watch.
type sent struct {
	kind   string
	object client.Object
}

// gather queues what is new, and returns what tells of more.
func (w *watcher) gather() (more chan struct{}) {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	var events []sent
	for ; w.next < w.cluster.served; w.next++ {
		h := w.cluster.history[w.next]
		if !strings.HasPrefix(h.path, w.kind+"/") {
			continue
		}
		was, is := h.from != nil && w.match(h.from), h.to != nil && w.match(h.to)
		if (was || is) && w.cluster.garbage {
			w.cluster.garbage, w.over = false, true
			w.send(events)
			w.pending.WriteString(`{"type":"MODIFIED","object":{"kind":"Po`)
			return nil
		}
		switch {
		case was && is:
			events = append(events, sent{"MODIFIED", h.to})
		case is:
			events = append(events, sent{"ADDED", h.to})
		case was:
			last := h.from.DeepCopyObject().(client.Object)
			last.SetResourceVersion(strconv.Itoa(w.next + 1))
			events = append(events, sent{"DELETED", last})
		}
	}
	w.send(events)
	return w.cluster.moved
}

// send queues events as the cluster does it now.
func (w *watcher) send(events []sent) {
	about := map[string]bool{}
	for _, e := range events {
		about[path(e.object)] = true
	}
	if w.cluster.swapped && len(about) == len(events) {
		slices.Reverse(events)
	}
	for _, e := range events {
		for range 1 + number(w.cluster.twice) {
			w.queue(e.kind, e.object)
		}
	}
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (w *watcher) run(ctx context.Context, cut chan struct{}) {
	stop := context.AfterFunc(ctx, func() { w.out.CloseWithError(ctx.Err()) })
	defer stop()
	defer w.out.Close()
	for {
		var more chan struct{}
		if !w.over {
			more = w.gather()
		}
		if _, err := w.out.Write(w.pending.Bytes()); err != nil || w.over {
			return
		}
		w.pending.Reset()
		select {
		case <-more:
		case <-cut:
			return
		case <-ctx.Done():
			return
		}
	}
}
