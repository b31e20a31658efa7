package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// explain says what to do about an error.
func explain(resource string, err error) error { return explainAs(resource, err, err) }

// explainAs says what to do about an error that is told in those words.
func explainAs(resource string, err, words error) error {
	switch {
	case apierrors.IsNotFound(err) && (resource == networkKind || resource == subnetKind):
		return fmt.Errorf("the cluster has no kind %s; an operator and its agents need it: kubectl apply --server-side --kustomize conf/kubernetes/crds", resource)
	case apierrors.IsNotFound(err) && (resource == topologyKind || resource == claimKind):
		return fmt.Errorf("the cluster has no kind %s; an operator whose operator.yaml has topologies: true needs it: kubectl apply --server-side --kustomize conf/kubernetes/topologies", resource)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("read %s: %w; use a kubeconfig that may", resource, words)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("read %s: %w: the API server does not know these credentials; they have expired, or are another cluster's: --kubeconfig and --context name others", resource, words)
	case errors.As(err, new(*url.Error)):
		return fmt.Errorf("read %s: the API server can't be reached: %w; `kubectl get --raw /readyz` tries it too, and --kubeconfig and --context name another", resource, words)
	case strings.HasPrefix(err.Error(), "serializer for "): // the client has no type for it
		return fmt.Errorf("read %s: what answered is no API server, but a proxy or a page to log in, for one (%w); look at the kubeconfig's server", resource, words)
	}
	return fmt.Errorf("read %s: %w", resource, words)
}
