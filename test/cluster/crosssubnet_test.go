package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/cloud/sim"
)

// Where the cloud puts addresses of other subnets on ENIs, pods of a topology run with those of its subnet on nodes that have no ENI there. They reach each
// other from node to node, and give their addresses back.
func TestPodsOfATopologyNeedNoENIInItsSubnet(t *testing.T) {
	t.Parallel()
	c := start(t, "across")
	c.addSubnet(alone)
	c.addNode("across-a")
	c.addNode("across-b")
	c.areInstances()
	c.Kubectl("apply", "--server-side", "--validate=strict", "--kustomize=../../conf/kubernetes/topologies")
	c.Kubectl("label", "namespace", "default", "enipool.io/topologies=enabled")
	c.installOperators("across", "  crossSubnet: true\ntopologies: true\n")
	c.Apply(strings.ReplaceAll(exclusive, "cache", "web"))
	// With a pool of eight addresses the first ENI has room for as many more.
	c.install(c.overlay(simulated, first, strings.Replace(withOperator, "pool:\n", "pool:\n  batch: 8\n", 1), c.patientPlugin()))
	c.Kubectl("wait", "--for=condition=Ready", "podsubnettopologies/web", "--timeout=1m")
	c.Apply(fmt.Sprintf(web, 8))
	c.run(8)
	for _, p := range c.web() {
		if !alone.V4.Contains(p.address()) {
			t.Errorf("pod %s has %s, which is not of its topology", p.Name, p.address())
		}
	}
	c.everyAddressIsRight()
	c.everybodyAnswers()
	for _, n := range c.nodes {
		if len(on(n, c.web())) == 0 {
			t.Errorf("no pod is on %s", n.Name)
		}
		for _, nic := range c.vpc.Account.Attached(n.Name) {
			if nic.Subnet == alone.ID {
				t.Errorf("%s has an ENI in the topology's subnet: %+v", n.Name, nic)
			}
		}
	}
	c.scale(0)
	c.Eventually("the topology's addresses go back", func() (err error) {
		c.vpc.Account.View(0, func(tx *sim.Tx) {
			for _, nic := range tx.Interfaces() {
				for _, a := range nic.Addresses() {
					if alone.V4.Contains(a) {
						err = fmt.Errorf("%s is on %s", a, nic.ID)
					}
				}
			}
		})
		return err
	})
}
