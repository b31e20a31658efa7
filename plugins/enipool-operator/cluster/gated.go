package cluster

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/enipool/enipool/pkg/operator/classify"
)

// longestWatch is after how long a watch is begun again: nothing tells of one that has died on its way.
const longestWatch = 10 * time.Minute

// withoutNode selects the pods that no node has yet. The API server keeps an index of them; gates it can't select by.
var withoutNode = client.MatchingFields{"spec.nodeName": ""}

// watchPods lists the pods that have the gate and tells of their changes until the watch ends. It is no informer: that would keep all pods that
// have no node, and of a cluster that has outgrown its nodes there may be more of those than there is memory.
func (o *Topologies) watchPods(ctx context.Context, tell func(classify.Event)) error {
	gated, version, err := o.listGated(ctx)
	if err != nil {
		return err
	}
	tell(classify.Event{Listed: &gated})
	for ctx.Err() == nil {
		began := time.Now()
		version, err = followPods(ctx, o.client, withoutNode, version, func(p *corev1.Pod, deleted bool) {
			gated, has := classify.PodOf(p)
			tell(classify.Event{Pod: &gated, Deleted: deleted || !has})
		})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return nil // what was missed a list tells
		}
		if err != nil || time.Since(began) < again { // a server that ends each at once is asked no faster than one that is away
			return ofTopologies.explain(err)
		}
	}
	return nil
}

// listGated returns the pods that have the gate, and the version of the list. It keeps one page at a time.
func (o *Topologies) listGated(ctx context.Context) (gated []classify.Pod, version string, err error) {
	for next := ""; ; {
		var list corev1.PodList
		err := o.client.List(ctx, &list, withoutNode, client.Limit(page), client.Continue(next))
		if apierrors.IsResourceExpired(err) && next != "" { // the state that the pages are of is forgotten
			gated, next = nil, ""
			continue
		}
		if err != nil {
			return nil, "", ofTopologies.explain(err)
		}
		for i := range list.Items {
			if p, is := classify.PodOf(&list.Items[i]); is {
				gated = append(gated, p)
			}
		}
		if next = list.Continue; next == "" {
			return gated, list.ResourceVersion, nil
		}
	}
}

// followPods tells of changes of the pods that are selected from a version on until the watch ends, and returns from where on to watch next.
func followPods(ctx context.Context, c client.WithWatch, selected client.ListOption, version string, tell func(p *corev1.Pod, deleted bool)) (string, error) {
	lasts := int64(longestWatch / time.Second)
	w, err := c.Watch(ctx, &corev1.PodList{}, selected,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &lasts}})
	if err != nil {
		return version, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		p, is := e.Object.(*corev1.Pod)
		if e.Type == watch.Error {
			return version, apierrors.FromObject(e.Object)
		}
		if !is {
			continue
		}
		version = p.ResourceVersion
		if e.Type != watch.Bookmark { // which only says how far the watch has come
			tell(p, e.Type == watch.Deleted)
		}
	}
	return version, nil
}

// repeat does something until ctx ends, and logs each new reason why it can't.
func repeat(ctx context.Context, log *slog.Logger, words string, do func() error) {
	for said := ""; ctx.Err() == nil; {
		err := do()
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			log.Error(words, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}
