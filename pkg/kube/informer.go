package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// newInformer makes an informer that waits after every failure, and whose waits end
// with its context. For some errors of a watch the usual one sleeps up to a minute
// without looking at its context, then asks a server that has just started for a
// state that is too old for it, and sleeps again; or it tries again at once, for ever.
// Here these errors look to it like any other, after which it lists.
func newInformer(lw toolscache.ListerWatcher, kind runtime.Object) toolscache.SharedIndexInformer {
	const never = 0 // a resync would only repeat what is known
	inner := toolscache.ToListerWatcherWithContext(lw)
	return toolscache.NewSharedIndexInformer(listedFirst{&toolscache.ListWatch{
		ListWithContextFunc: inner.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, o)
			if err == nil {
				return w, nil
			}
			if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) || o.ResourceVersion == "" {
				err = errors.New(err.Error())
			}
			return nil, err
		},
	}}, kind, never, toolscache.Indexers{})
}

// listedFirst is listed and then watched. For a watch that begins with all there is the API server goes through the pods of
// all nodes, and sorts them, once for each agent (newCacheIntervalFromStore of k8s.io/apiserver); a list finds those of a node
// by their index. When 1,000 agents began beside 30,000 pods it had little time for anything else.
type listedFirst struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is what client-go asks for.
func (listedFirst) IsWatchListSemanticsUnSupported() bool { return true }
