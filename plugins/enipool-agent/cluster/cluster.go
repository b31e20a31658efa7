// Package cluster finds the API server that knows the node, and joins it.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/devices"
	"github.com/enipool/enipool/pkg/kube"
	"github.com/enipool/enipool/pkg/kubeletplugin"
	restclient "k8s.io/client-go/rest"
)

// NodeName is the variable of the environment by which a DaemonSet tells its pod the
// name of the node.
const NodeName = "NODE_NAME"

// serviceAccount is what a pod of a cluster reaches the API server with.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// Join returns the node as the API server knows it, nil where there is none to
// ask, and the plugin that its kubelet asks for claims. It does not call anybody: the agent starts without them too.
func Join(conf agentconf.Config, log *slog.Logger) (*kube.Node, *kubeletplugin.Plugin, error) {
	name := cmp.Or(os.Getenv(NodeName), conf.Node)
	tellLeft(conf.Kubernetes, name, serviceAccount, log)
	config, err := Find(conf.Kubernetes)
	if config == nil || err != nil {
		return nil, nil, err
	}
	kube.TakeLogs(log)
	log.Info("asking the API server for the node's pods", "node", name, "server", config.Host)
	// Whether there may be a taint each report says: that can change at any time.
	options := kube.Options{Node: name, Config: config, Log: log, Taint: true}
	var node *kube.Node
	plugin := kubeletplugin.New(kubeletplugin.Options{Driver: kube.Driver, Folder: conf.Kubernetes.KubeletFolder, On: conf.Kubernetes.DRA, Log: log,
		Lookup: func(ctx context.Context, claim devices.Claim) (devices.Claim, error) {
			return node.Devices().Lookup(ctx, claim)
		}})
	if conf.Kubernetes.DRA {
		options.Claims = plugin
	}
	options.DevicesLeft = plugin.Left()
	node, err = kube.New(options)
	return node, plugin, err
}

// tellLeft says what of an earlier agent stays on the Node object of a cluster that this one is to leave alone.
func tellLeft(k agentconf.Kubernetes, name, account string, log *slog.Logger) {
	off := k.Enabled == agentconf.Off
	if k.Enabled = agentconf.Auto; off && isReachable(k, account) {
		log.Info("kubernetes.enabled is false: condition, taint and resource that an earlier agent may have written stay on the Node",
			"node", name, "todo", strings.Join(kube.ByHand(name), "; "))
	}
}

// Find returns how to reach the API server, nil where there is none to ask.
func Find(k agentconf.Kubernetes) (*restclient.Config, error) {
	if !Reachable(k) {
		return nil, nil
	}
	config, err := kube.Load(k.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w; the keys kubernetes.enabled and kubernetes.kubeconfig say where the API server is", err)
	}
	return config, nil
}

// Reachable tells whether there is an API server to ask.
func Reachable(k agentconf.Kubernetes) bool { return isReachable(k, serviceAccount) }

// isReachable does so for a pod with that account.
func isReachable(
	k agentconf.Kubernetes, account string) bool {
	if k.Enabled != agentconf.Auto {
		return k.Enabled == agentconf.On
	}
	_, err := os.Stat(account)
	return k.Kubeconfig != "" || os.Getenv("KUBERNETES_SERVICE_HOST") != "" && err == nil
}
