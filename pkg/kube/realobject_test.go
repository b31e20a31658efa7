package kube

import (
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/order"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/scale"
)

// A real API server takes what the agent writes, with the rights that it has, keeps it as it was written, and lets of a
// write and an acceptance one win.
func TestRealNodeNetwork(t *testing.T) {
	c := startControl(t)
	_, err := envtest.InstallCRDs(c.rest, envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "conf", "kubernetes", "crds", "crds.yaml")}, ErrorIfPathMissing: true})
	c.do(t, err)
	scheme := runtime.NewScheme()
	c.do(t, crd.AddToScheme(scheme))
	admin, err := client.New(c.rest, client.Options{Scheme: scheme})
	c.do(t, err)
	c.newNode(t, here)
	config := c.agent(t, "agent", rights)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"enipool.io"}, Resources: []string{networks}, Verbs: []string{"list", "watch", "create", "patch"}}}}
	c.do(t, c.admin.Create(t.Context(), role))
	c.do(t, c.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "agent"}}}))
	n := runReal(t, config, here, nil)
	o := n.Object()
	known := func(so func(order.Object) bool) func() bool {
		return func() bool { is, read := o.Newest(); return read && so(is) }
	}
	await(t, "the first read", known(func(is order.Object) bool { return is.Version == "" }))
	await(t, "the Node", func() bool { _, known := n.view.readNode(); return known })

	spec := order.Spec{Mode: order.Operator, Families: []eni.Family{eni.IPv4}, Slots: 16, Boot: "boot",
		Pool: pool.Config{Multiple: 1, MaxAllocate: 110, Scale: scale.Config{Batch: 16}}}
	spec.Waiting = 1
	asks := order.Asks{WaitingSince: time.Unix(1_800_000_000, 0), Handover: &order.Handover{Tokens: []string{"token"}}}
	none, _ := o.Newest()
	made, err := o.Write(t.Context(), none, spec, asks)
	c.do(t, err)
	if made.Generation != 1 || made.Spec.Pool != spec.Pool || made.Spec.Slots != 16 || !made.WaitingSince.Equal(asks.WaitingSince) || made.Handover.Tokens[0] != "token" {
		t.Errorf("%+v is not what was written: %+v", made, spec)
	}

	var is crd.NodeNetwork
	c.do(t, admin.Get(t.Context(), client.ObjectKey{Name: here}, &is))
	is.Status.Revision, is.Status.Mode = 7, crd.Operator
	c.do(t, admin.Status().Update(t.Context(), &is))
	spec.Waiting, spec.Release = 0, []netip.Prefix{netip.MustParsePrefix("10.0.0.9/32"), netip.MustParsePrefix("10.0.1.16/28")}
	if _, err := o.Write(t.Context(), made, spec, order.Asks{}); !errors.Is(err, order.ErrConflict) {
		t.Fatalf("a write from an older copy: %v", err)
	}
	newer, _ := o.Newest()
	if newer.Status.Revision != 7 {
		t.Fatalf("after a conflict: %+v", newer)
	}
	written, err := o.Write(t.Context(), newer, spec, order.Asks{})
	c.do(t, err)
	if written.Generation != 2 || len(written.Spec.Release) != 2 || written.Handover != nil || !written.WaitingSince.IsZero() {
		t.Errorf("%+v", written)
	}
	c.do(t, admin.Get(t.Context(), client.ObjectKey{Name: here}, &is))
	if n := len(is.ManagedFields); n > 0 {
		t.Errorf("%d lists of who wrote which field are left after the agent's write: %v", n, is.ManagedFields)
	}
	is.Status.Revision = 8
	c.do(t, admin.Status().Update(t.Context(), &is))
	await(t, "the watch tells of the status", known(func(is order.Object) bool { return is.Status.Revision == 8 }))
	is.Finalizers = nil
	c.do(t, admin.Update(t.Context(), &is))
	c.do(t, admin.Delete(t.Context(), &is))
	await(t, "the watch tells that it is gone", known(func(is order.Object) bool { return is.Version == "" }))
}
