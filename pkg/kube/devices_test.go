package kube

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// watchedTo is a watch that has come as far as a version.
type watchedTo struct {
	toolscache.SharedIndexInformer
	store   toolscache.Store
	version string
}

func (w watchedTo) GetStore() toolscache.Store      { return w.store }
func (w watchedTo) LastSyncResourceVersion() string { return w.version }

// A watch that breaks tells no deletion of what it never told of: as when a kubelet that starts wipes what was written during the break.
func TestASliceThatWentWhileTheWatchWasBrokenIsNotThere(t *testing.T) {
	node := here
	slice := func(version string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: sliceName(node), ResourceVersion: version}, Spec: resourcev1.ResourceSliceSpec{Driver: Driver, NodeName: &node}}
	}
	for _, tt := range []struct{ watched, own, version, want string }{
		{"", "10", "9", "10"}, // it comes yet
		{"", "10", "10", ""},
		{"", "10", "12", ""},
		{"", "10", "", "10"},
		{"5", "10", "9", "10"},
		{"12", "10", "12", "12"},
	} {
		store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
		if tt.watched != "" {
			_ = store.Add(slice(tt.watched))
		}
		d := &Devices{node: node, own: slice(tt.own), watch: watchedTo{store: store, version: tt.version}}
		got := ""
		if have, _ := d.newest(); have != nil {
			got = have.ResourceVersion
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
