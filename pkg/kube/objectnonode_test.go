package kube

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/enipool/enipool/pkg/order"
)

// An agent that has another name for its node than the cluster waits for its Node for ever: the error says which name that is, and where it is from.
func TestAnAgentWithAnotherNameSaysWhichNodeThereIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, _ := start(t, newCluster(), Options{})
		synctest.Wait()
		none, _ := newest(n.Object())
		_, err := n.Object().Write(t.Context(), none, wants, order.Asks{})
		if err == nil || !strings.Contains(err.Error(), "no Node "+here+":") || !strings.Contains(err.Error(), "NODE_NAME") {
			t.Error(err)
		}
	})
}
