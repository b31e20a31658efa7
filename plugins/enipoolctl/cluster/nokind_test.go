package cluster

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The operators' manifests have no kinds: who reads that there are none has to read where they are.
func TestWithoutTheKindsPeopleReadWhereTheyAre(t *testing.T) {
	for kind, folder := range map[string]string{networkKind: "crds", subnetKind: "crds", topologyKind: "topologies", claimKind: "topologies"} {
		none := apierrors.NewNotFound(schema.GroupResource{Resource: kind}, "")
		if err := explain(kind, none); !strings.Contains(err.Error(), "kubectl apply --server-side --kustomize conf/kubernetes/"+folder) {
			t.Error(err)
		}
	}
}
