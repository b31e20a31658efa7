package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/kube"
	restclient "k8s.io/client-go/rest"
)

// nodeName is the variable of the environment by which a DaemonSet tells its pod the
// name of the node.
const nodeName = "NODE_NAME"

// serviceAccount is what a pod of a cluster reaches the API server with.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// joinCluster returns the node as the API server knows it, nil where there is none to
// ask. It does not call it: the agent starts without it too.
func joinCluster(conf agentconf.Config, log *slog.Logger) (*kube.Node, error) {
	config, err := findCluster(conf.Kubernetes)
	if config == nil || err != nil {
		return nil, err
	}
	kube.TakeLogs(log)
	name := cmp.Or(os.Getenv(nodeName), conf.Node)
	log.Info("asking the API server for the node's pods", "node", name, "server", config.Host)
	// Whether there may be a taint each report says: that can change at any time.
	return kube.New(kube.Options{Node: name, Config: config, Log: log, Taint: true})
}

// findCluster returns how to reach the API server, nil where there is none to ask.
func findCluster(k agentconf.Kubernetes) (*restclient.Config, error) {
	if !inCluster(k, serviceAccount) {
		return nil, nil
	}
	config, err := kube.Load(k.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; the keys kubernetes.enabled and kubernetes.kubeconfig say where the API server is", err)
	}
	return config, nil
}

// inCluster tells whether there is an API server to ask.
func inCluster(k agentconf.Kubernetes, account string) bool {
	if k.Enabled != agentconf.Auto {
		return k.Enabled == agentconf.On
	}
	_, err := os.Stat(account)
	return k.Kubeconfig != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" && err == nil
}

// mergeWakes wakes for either of two reasons until ctx ends. Wakes that come together are
// one.
func mergeWakes(ctx context.Context, one, other <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-one:
			case <-other:
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}
