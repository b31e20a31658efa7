package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enipool/enipool/pkg/kube/crd"
	"github.com/enipool/enipool/plugins/enipoolctl/cluster/clustertest"
)

// topologyOf is one that is ready since an hour, if nothing changes it.
func topologyOf(name string, change func(*crd.PodSubnetTopology)) *crd.PodSubnetTopology {
	t := &crd.PodSubnetTopology{TypeMeta: metav1.TypeMeta{Kind: "PodSubnetTopology", APIVersion: "enipool.io/v1alpha1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2},
		Spec: crd.TopologySpec{Subnets: []crd.Source{{ID: "subnet-a"}}, Strategy: crd.Strategy{Type: "Elastic"}}}
	ready(t, "True", "Ready", "", time.Hour)
	change(t)
	return t
}

func ready(t *crd.PodSubnetTopology, status metav1.ConditionStatus, reason, message string, ago time.Duration) {
	t.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: t.Generation, LastTransitionTime: *since(ago)}}
}

func topologies() []*crd.PodSubnetTopology {
	number := func(n int32) *int32 { return &n }
	return []*crd.PodSubnetTopology{
		topologyOf("first", func(t *crd.PodSubnetTopology) { t.Spec.Priority = 5 }),
		topologyOf("second", func(t *crd.PodSubnetTopology) {
			t.Status.Room = number(12)
			ready(t, "True", "Ready", "the operator does not know subnet-x", time.Hour)
		}),
		topologyOf("full", func(t *crd.PodSubnetTopology) {
			t.Status.Room, t.Status.Pods, t.Status.Claims = number(0), number(30), number(31)
		}),
		topologyOf("new", func(t *crd.PodSubnetTopology) { t.Status.Conditions = nil }),
		topologyOf("changed", func(t *crd.PodSubnetTopology) { t.Generation = 3; t.Spec.Priority = 1 }),
		topologyOf("bad", func(t *crd.PodSubnetTopology) {
			ready(t, "False", "NoSubnet", "none of its subnets is ready", time.Minute)
		}),
		topologyOf("bad-longer", func(t *crd.PodSubnetTopology) {
			t.Spec.Strategy = crd.Strategy{Type: "Sticky", TTL: "168h"}
			t.Spec.Subnets = []crd.Source{{ID: "subnet-b", Ranges: []crd.Range{{From: "10.0.0.4", To: "10.0.0.9"}}}, {ID: "subnet-a"}}
			ready(t, "False", "SubnetNotExclusive", "subnet subnet-b is not Exclusive", 2*time.Hour)
			t.Generation = 3
		}),
	}
}

// The worst come first: topologies that can't be served, the longest first, then those nobody has judged, then full ones, then in the order of pods.
func TestTheWorstTopologiesComeFirst(t *testing.T) {
	var list []crd.PodSubnetTopology
	for _, is := range topologies() {
		list = append(list, *is)
	}
	var got []string
	for _, r := range topologyRows(list) {
		got = append(got, r.Topology+" "+r.Ready+" "+r.Reason)
	}
	want := []string{"bad-longer False NotAnswered", "bad False NoSubnet", "changed True NotAnswered", "new Unknown NotAnswered", "full True NoRoom", "first True ", "second True "}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// claimOf is one that a pod has, if nothing changes it.
func claimOf(address, pod string, change func(*crd.AddressClaim)) *crd.AddressClaim {
	c := &crd.AddressClaim{TypeMeta: metav1.TypeMeta{Kind: "AddressClaim", APIVersion: "enipool.io/v1alpha1"}, ObjectMeta: metav1.ObjectMeta{Name: address},
		Spec:   crd.ClaimSpec{Topology: "db", Subnet: "subnet-a", Address: address, Namespace: "prod", Pod: pod, Keep: "TTL", TTL: "24h"},
		Status: crd.ClaimStatus{Phase: "Bound", Node: "n1", Interface: "eni-1"}}
	change(c)
	return c
}

func claims() []*crd.AddressClaim {
	free := func(ago time.Duration) func(*crd.AddressClaim) {
		return func(c *crd.AddressClaim) { c.Status.Phase, c.Status.FreeSince = "Free", since(ago) }
	}
	return []*crd.AddressClaim{
		claimOf("10.0.0.1", "well", func(*crd.AddressClaim) {}),
		claimOf("10.0.0.2", "restless", func(c *crd.AddressClaim) { c.Status.Moves = 7; c.Spec.Topology = "web" }),
		claimOf("10.0.0.3", "free-long", free(23*time.Hour)),
		claimOf("10.0.0.4", "free", free(time.Hour)),
		claimOf("10.0.0.5", "fixed", func(c *crd.AddressClaim) {
			free(90 * time.Hour)(c)
			c.Spec.Keep, c.Spec.TTL, c.Spec.Workload = "Workload", "", &crd.Workload{Kind: "StatefulSet", Name: "mysql", UID: "u"}
		}),
		claimOf("10.0.0.6", "ends", func(c *crd.AddressClaim) { c.Status.Phase = "Releasing" }),
		claimOf("10.0.0.7", "moves", func(c *crd.AddressClaim) {
			c.Status.Phase, c.Status.To, c.Status.Moves, c.Status.Message = "Moving", "n2", 3, "moving 10.0.0.7 from n1"
		}),
		claimOf("10.0.0.8", "begins", func(c *crd.AddressClaim) { c.Status = crd.ClaimStatus{} }),
		claimOf("10.0.0.9", "contested", func(c *crd.AddressClaim) { c.Status.Phase = "Conflict" }),
		claimOf("10.0.0.10", "odd", func(c *crd.AddressClaim) { c.Status.Phase = "Dancing" }),
		claimOf("10.0.0.11", "deleted", func(c *crd.AddressClaim) { c.DeletionTimestamp = since(time.Minute) }),
	}
}

// The worst come first: claims whose pod waits, then those that end, the next to end first, then those that pods have.
func TestTheWorstClaimsComeFirst(t *testing.T) {
	var list []crd.AddressClaim
	for _, is := range claims() {
		list = append(list, *is)
	}
	pods := func(only claimFilter) (got []string) {
		for _, r := range claimRows(list, only) {
			got = append(got, r.Pod)
		}
		return got
	}
	for _, tt := range []struct {
		only claimFilter
		want []string
	}{
		{claimFilter{}, []string{"odd", "contested", "moves", "begins", "deleted", "ends", "free-long", "free", "fixed", "restless", "well"}},
		{claimFilter{topology: "web"}, []string{"restless"}},
		{claimFilter{node: "n2"}, []string{"moves"}},
	} {
		if got := pods(tt.only); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q\nwant %q", tt.only, got, tt.want)
		}
	}
}

// withTopologies is a cluster with topologies and claims.
func withTopologies(t *testing.T) (*clustertest.Server, []string) {
	s, flags := cluster3(t)
	for _, is := range topologies() {
		s.Put("/apis/enipool.io/v1alpha1/podsubnettopologies/"+is.Name, is)
	}
	for _, is := range claims() {
		s.Put("/apis/enipool.io/v1alpha1/addressclaims/"+is.Name, is)
	}
	return s, flags
}

func TestTopologiesAndClaimsAreShown(t *testing.T) {
	s, flags := withTopologies(t)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"topologies"}, []string{"operator: n3_abc leads", "TOPOLOGY",
			"bad-longer Sticky 168h 0 subnet-b(1 range),subnet-a - - - False 120m NotAnswered: the operator has not answered its last change; before: SubnetNotExclusive: subnet subnet-b is not Exclusive",
			"full Elastic 0 subnet-a 30 31 0 True 60m NoRoom: its subnets have no address left for new pods: enipoolctl cluster subnets, and claims --topology full",
			"second Elastic 0 subnet-a - - 12 True 60m the operator does not know subnet-x", "first Elastic 5 subnet-a - - - True 60m -"}},
		{[]string{"topologies", "-o", "wide"}, []string{"WARM ZONES AGE READY FOR WHY"}},
		{[]string{"topologies", "-o", "json"}, []string{`"topology": "full"`, `"leads": true`, `"room": 0`, `"from": "10.0.0.4"`}},
		{[]string{"claims"}, []string{"operator: n3_abc leads", "ADDRESS TOPOLOGY POD PHASE NODE KEPT BY FREE ENDS MOVES MESSAGE",
			"10.0.0.7 db prod/moves Moving n1 to n2 24h - - 3 moving 10.0.0.7 from n1", "10.0.0.3 db prod/free-long Free n1 24h 23h in 59m 0 -",
			"10.0.0.5 db prod/fixed Free n1 StatefulSet mysql 3d with it 0 -", `unknown phase "Dancing"`, "10.0.0.11 db prod/deleted Bound, deleted"}},
		{[]string{"claims", "--topology", "web", "-o", "wide"}, []string{"10.0.0.2 web prod/restless Bound n1 subnet-a eni-1 - 24h - - 7"}},
		{[]string{"claims", "--node", "n9"}, []string{"no address is kept for a pod here"}},
		{[]string{"claims", "-o", "json"}, []string{`"name": "10.0.0.5"`, `"statefulSet": "mysql"`, `"to": "n2"`}},
	} {
		code, out, errs := run(Command(), append(append([]string{"cluster"}, tt.args...), flags...)...)
		words := strings.Join(strings.Fields(out), " ")
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(words, want) {
				t.Errorf("%v: exit %d, %q is not in\n%s%s", tt.args, code, want, out, errs)
			}
		}
	}
	for _, is := range topologies() {
		s.Put("/apis/enipool.io/v1alpha1/podsubnettopologies/"+is.Name, nil)
	}
	code, out, _ := run(Command(), append([]string{"cluster", "topologies", "-o", "json"}, flags...)...)
	var none struct{ Topologies []topologyRow }
	if err := json.Unmarshal([]byte(out), &none); code != 0 || err != nil || none.Topologies == nil {
		t.Errorf("without any the list is not empty: exit %d, %v\n%s", code, err, out)
	}
	if code, out, _ := run(Command(), append([]string{"cluster", "topologies"}, flags...)...); code != 0 || !strings.Contains(out, "there are no topologies") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
