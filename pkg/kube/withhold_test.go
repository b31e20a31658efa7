package kube

import (
	"testing"
	"testing/synctest"
	"time"
)

const withheldNode = `
Ready=True KubeletReady: 
taint dedicated=x:NoExecute
cpu 4 of 4
pods 110 of 110
enipool.io/pod-addresses 20 of 20
`

// The agent is told to leave the cluster alone while the node is faulty: nothing says any more that it is,
// and nothing is written again until it is told otherwise.
func TestANodeWhoseAgentIsSilencedKeepsNoTaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, _ := start(t, c, Options{Taint: true})
		n.Report(faulty(20))
		expectNode(t, c, faultyNode)
		n.Withhold(true)
		expectNode(t, c, withheldNode)
		writes := c.calls("PATCH")
		n.Report(fit(50))
		n.Report(faulty(10))
		time.Sleep(time.Hour)
		if expectNode(t, c, withheldNode); c.calls("PATCH") != writes {
			t.Errorf("%d writes though all is withheld", c.calls("PATCH")-writes)
		}
		n.Report(faulty(20))
		n.Withhold(false)
		expectNode(t, c, faultyNode)
	})
}

// While the API server is away, the taint waits for it.
func TestASilencedAgentTakesTheTaintOffWhenTheAPIServerIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.put(newNode())
		n, _ := start(t, c, Options{Taint: true})
		n.Report(faulty(20))
		expectNode(t, c, faultyNode)
		c.do(func() { c.status = 503 })
		n.Withhold(true)
		time.Sleep(time.Minute)
		expectNode(t, c, faultyNode)
		c.do(func() { c.status = 0 })
		time.Sleep(time.Minute)
		expectNode(t, c, withheldNode)
	})
}
