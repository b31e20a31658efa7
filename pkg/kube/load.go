package kube

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Load returns how to reach the API server: by a kubeconfig file, or with an empty
// name the way that a pod of the cluster does.
func Load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return inCluster()
	}
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	raw, err := clientcmd.Load(text)
	if err != nil { // whose text may quote the file, which holds secrets
		return nil, fmt.Errorf("read the kubeconfig %s: it is not valid; `kubectl --kubeconfig %[1]s config view` says why", kubeconfig)
	}
	for _, part := range raw.Clusters {
		part.LocationOfOrigin = kubeconfig // relative paths in it begin at its folder
	}
	for _, part := range raw.AuthInfos {
		part.LocationOfOrigin = kubeconfig
	}
	if err := clientcmd.ResolveLocalPaths(raw); err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*raw, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}

func inCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, errors.New("find the API server: this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set) and no kubeconfig is named")
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("find the API server: the pod has no service account: %w; set automountServiceAccountToken, or name a kubeconfig", err)
	case err != nil:
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	return config, nil
}
