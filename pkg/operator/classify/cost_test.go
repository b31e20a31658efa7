package classify

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkCostOfAPod is all that the operator computes for one gated pod of a topology: it is read, classified and written as a patch.
func BenchmarkCostOfAPod(b *testing.B) {
	k := benchKnown(b)
	p := gated("db", "db-0", "a-7")
	p.Annotations = map[string]string{"checksum/config": "0"}
	bytes := 0
	for b.Loop() {
		is, _ := PodOf(p)
		k.forget()
		answer, known := k.classify(is.Pod)
		if !known || answer.class.Topology != "t-7" {
			b.Fatalf("%+v", answer)
		}
		patch, err := json.Marshal(patchOf(is, answer.class.Topology, answer.class.Zones))
		if err != nil {
			b.Fatal(err)
		}
		bytes = len(patch)
	}
	b.ReportMetric(float64(bytes), "patch-bytes")
}

// A pod costs one patch, and all pods that come together one read of the topologies.
func TestPodsThatComeTogetherCostOnePatchEachAndOneRead(t *testing.T) {
	const pods = 500
	w := newWorld(t)
	w.ready()
	w.addTopology("db", nil)
	w.in(func(*term) {
		w.settle()
		patches, reads := w.count(&w.patches), w.count(&w.reads)
		for i := range pods {
			w.put(gated("db", fmt.Sprint("p-", i), "x"))
		}
		w.wait(10 * time.Second)
		patches, reads = w.count(&w.patches)-patches, w.count(&w.reads)-reads
		t.Logf("measured | requests for %d pods | %d patches | %d reads of all topologies |", pods, patches, reads)
		if patches != pods || reads > 20 {
			t.Errorf("%d patches and %d reads for %d pods", patches, reads, pods)
		}
		if p := w.pod("db", "p-0"); len(p.Spec.SchedulingGates) != 1 || p.Spec.SchedulingGates[0] == (corev1.PodSchedulingGate{Name: Gate}) {
			t.Errorf("gates: %v", p.Spec.SchedulingGates)
		}
	})
}
