package cluster

import (
	"context"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// One node's object has a time that the schema lets pass and that Go does not read: the others are read nevertheless, or no operator leads any more.
func TestAnObjectThatCantBeReadKeepsNoOtherFromTheOperator(t *testing.T) {
	config := server(t, kinds)
	ctx := context.Background()
	c, err := dynamic.NewForConfig(config)
	must(t, err)
	networks := c.Resource(schema.GroupVersionResource{Group: "enipool.io", Version: "v1alpha1", Resource: "nodenetworks"})
	for name, since := range map[string]string{"good": "2026-11-27T12:00:00Z", "odd": "2026-11-27t12:00:00z"} {
		_, err := networks.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "enipool.io/v1alpha1", "kind": "NodeNetwork", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"mode": "Operator", "slots": int64(1), "waiting": int64(1), "waitingSince": since}}}, metav1.CreateOptions{})
		if err != nil {
			t.Logf("%s is refused, which is fine: %v", name, err)
		}
	}
	objects, err := New(config, slog.New(slog.DiscardHandler))
	must(t, err)
	all, err := objects.ReadAll(ctx)
	if err != nil || len(all.Networks) == 0 {
		t.Errorf("%d objects of two: %v", len(all.Networks), err)
	}
}
