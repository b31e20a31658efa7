package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator"
)

// Each part has folders of its own: who has no topologies is sent to theirs, and to no others.
func TestWhatIsMissingIsSaidOnceAndByItsFolder(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, crd.AddToScheme(scheme))
	kind := schema.GroupResource{Group: "enipool.io", Resource: "podsubnettopologies"}
	for want, refusal := range map[string]error{
		"kubectl apply --server-side --kustomize conf/kubernetes/topologies":                                        apierrors.NewNotFound(kind, ""),
		"the role enipool-operator-topologies of conf/kubernetes/topologies allows it, unless a policy of the clus": apierrors.NewForbidden(kind, "", errors.New("no")),
	} {
		o := &Topologies{client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refusal },
		}).Build()}
		_, err := o.ReadTopologies(context.Background())
		if err == nil || strings.Count(err.Error(), "conf/kubernetes") != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q once", err, want)
		}
	}
	if err := ofTopologies.explain(apierrors.NewNotFound(kind, "a")); !errors.Is(err, operator.ErrGone) {
		t.Errorf("an object that is gone: %v", err)
	}
}
