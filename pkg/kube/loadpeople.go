package kube

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/homedir"
)

// LoadForPeople returns how to reach the API server that kubectl would take: by the kubeconfig that is named, or all that KUBECONFIG lists, or the
// one of the home, and where there is none by the account of the pod that this is. context names one of its contexts, "" is the current one.
func LoadForPeople(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath, rules.WarnIfAllMissing, rules.MigrationRules = kubeconfig, false, nil // nothing is copied in the home
	if home := homedir.HomeDir(); os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" && home != "" {
		rules.Precedence = []string{filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)}
	}
	raw, err := rules.Load()
	if err != nil {
		return nil, explainFiles(rules, err)
	}
	if clientcmdapi.IsConfigEmpty(raw) && kubeconfig == "" && context == "" {
		config, err := inCluster()
		if files := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); err != nil && files != "" {
			err = fmt.Errorf("find the API server: KUBECONFIG names %s, where no kubeconfig is, and this is no pod of a cluster", files)
		}
		return config, err
	}
	if context != "" && raw.Contexts[context] == nil {
		names := slices.Sorted(maps.Keys(raw.Contexts))
		return nil, fmt.Errorf("read the kubeconfig: it has no context %q; it has: %s", context, strings.Join(names, ", "))
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*raw, context, nil, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", strings.Join(rules.GetLoadingPrecedence(), ", "), err)
	}
	return config, nil
}

// explainFiles says which file can't be read. The error itself may quote a file, which holds secrets.
func explainFiles(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("read the kubeconfig: %w", at)
	}
	files := rules.GetLoadingPrecedence()
	if rules.ExplicitPath != "" {
		files = []string{rules.ExplicitPath}
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			if _, err = clientcmd.Load(text); err != nil {
				return fmt.Errorf("read the kubeconfig %s: it is not valid; `kubectl --kubeconfig %[1]s config view` says why", file)
			}
		}
	}
	return fmt.Errorf("read the kubeconfig %s: it is not valid; `kubectl config view` says why", strings.Join(files, ", "))
}
