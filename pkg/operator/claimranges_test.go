package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/pkg/operator/claims"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The ranges of topologies whose pods keep their addresses are reserved in the cloud as long as the topology is there, beside those that people name,
// and whoever leads. An Elastic one has none, and a subnet that is the topologies' alone needs none.
func TestRangesOfTopologiesAreReserved(t *testing.T) {
	play(t, setup{nodes: 1}, func(ctx context.Context, w *world) {
		c := w.withTopologies(topologyOf("fixed", "Fixed", "", "a", "10.0.200.0", "10.0.200.7"), topologyOf("sticky", "Sticky", "5m", "a", "10.0.200.4", "10.0.200.11"),
			topologyOf("elastic", "Elastic", "", "a", "", ""))
		c.setSets(theSet)
		w.store.subnets["a"] = &crd.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid-a", Generation: 1, ResourceVersion: "1"},
			Spec: crd.SubnetSpec{Use: "Shared", Reserve: []string{"10.0.201.0/29"}}}
		w.store.version = 1
		w.begin(ctx)
		w.leadWith(ctx, nil)
		w.until(5*time.Minute, func() bool { return w.reservedIn("a") == "10.0.200.0/29 10.0.200.8/30 10.0.201.0/29" })
		w.lead.kill()
		time.Sleep(lease.Duration)
		w.leadWith(ctx, nil)
		for range 4 * 120 {
			time.Sleep(250 * time.Millisecond)
			if is := w.reservedIn("a"); is != "10.0.200.0/29 10.0.200.8/30 10.0.201.0/29" {
				t.Fatalf("%s under the next leader: reserved is %s", w.since(), is)
			}
		}
		c.tell(claims.Event{Topology: c.topologies["fixed"], Deleted: true})
		w.until(5*time.Minute, func() bool { return w.reservedIn("a") == "10.0.200.4/30 10.0.200.8/30 10.0.201.0/29" })
	})
}
