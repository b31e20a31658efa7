package cluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/enipool/enipool/test/kube"
)

var keptIn = flag.String("keep", "", "keep a cluster of two nodes up until the file `stop` is in this folder: make kube-up")

// inside is a program that runs others where the cluster is: the API server answers there, and its nodes are processes there.
const inside = `#!/bin/sh
# %s COMMAND [ARGUMENTS]: in the cluster that make kube-up keeps up, as its administrator.
export KUBECONFIG=%s PATH=%s:%s:"$PATH"
exec nsenter --target %d --net --mount --wdns="$PWD" -- "$@"
`

// A cluster with an operator is kept up for people to look around in, with pods on both nodes.
func TestKeptUp(t *testing.T) {
	if *keptIn == "" {
		t.Skip("nobody wants to look around: make kube-up")
	}
	t.Log("images of enipool are built, then the API server is started: minutes where the machine has other work")
	c := start(t, "up")
	t.Log("the API server answers; two nodes are started")
	c.addSubnet(second) // two more subnets, for topologies to be tried on
	c.addSubnet(alone)
	c.addNode("node-1")
	c.addNode("node-2")
	c.areInstances()
	t.Log("the operators are installed")
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize=../../conf/kubernetes/topologies")
	// Their pages can be asked for by way of the API server, as with the component operator-monitoring,
	// which needs kinds of the Prometheus operator.
	c.installOperators("up", "topologies: true\nlisten: 0.0.0.0:9810\n")
	t.Log("the agents are installed")
	c.install(c.overlay(simulated, first, withOperator, ""))
	t.Log("six pods are started")
	c.Apply(fmt.Sprintf(web, 6))
	c.run(6)
	bin, err := kube.Assets()
	c.must(err)
	way := filepath.Join(*keptIn, "in")
	text := fmt.Sprintf(inside, way, c.Kubeconfig("admin"), bin, filepath.Dir(program(c.dir, first, "enipoolctl")), os.Getpid())
	c.must(os.WriteFile(way, []byte(text), 0o755)) //nolint:gosec // it is run
	c.must(os.WriteFile(filepath.Join(*keptIn, "pages"), []byte(c.showPages()), 0o600))
	c.must(os.WriteFile(filepath.Join(*keptIn, "ready"), nil, 0o600))
	for {
		if _, err := os.Stat(filepath.Join(*keptIn, "stop")); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}
