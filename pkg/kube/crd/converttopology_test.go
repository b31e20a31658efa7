package crd

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/enipool/enipool/pkg/topology"
)

func TestATopologyIsReadAsPeopleWroteIt(t *testing.T) {
	made := time.Unix(1_800_000_000, 0)
	var object PodSubnetTopology
	if err := json.Unmarshal([]byte(`{"metadata": {"name": "db"}, "spec": {"priority": 5,
		"namespaceSelector": {"matchLabels": {"team": "db"}}, "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}, {"key": "old", "operator": "DoesNotExist"}]},
		"subnets": [{"id": "subnet-b", "ranges": [{"from": "10.0.0.7", "to": "10.0.0.9"}]}, {"id": "subnet-a"}], "strategy": {"type": "Sticky", "ttl": "90m"}, "warm": 2}}`), &object); err != nil {
		t.Fatal(err)
	}
	object.CreationTimestamp = metav1.NewTime(made)
	got, err := object.Read()
	want := topology.Topology{Name: "db", Created: made, Priority: 5, Namespaces: topology.Selector{Labels: map[string]string{"team": "db"}},
		Pods: topology.Selector{Requirements: []topology.Requirement{{Key: "app", Operator: topology.In, Values: []string{"x"}}, {Key: "old", Operator: topology.DoesNotExist}}},
		Sources: []topology.Source{{Subnet: "subnet-b", Ranges: []topology.Range{{From: netip.MustParseAddr("10.0.0.7"), To: netip.MustParseAddr("10.0.0.9")}}},
			{Subnet: "subnet-a"}},
		Strategy: topology.Sticky, TTL: 90 * time.Minute}
	if diff := cmp.Diff(want, got, sameValues); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	object.Spec.Strategy.TTL = ""
	if got, err = object.Read(); got.TTL != 168*time.Hour || err != nil {
		t.Errorf("without a ttl: %s, %v", got.TTL, err)
	}
	object.Spec.Strategy.Type = "Fixed"
	if got, err = object.Read(); got.TTL != 0 || err != nil {
		t.Errorf("what is kept as long as its workload: %s, %v", got.TTL, err)
	}
}

// A rule that can't be read is still one for its pods: they wait, and another one does not become theirs.
func TestATopologyThatCantBeReadKeepsItsPodsAndHasNoSubnet(t *testing.T) {
	for want, change := range map[string]func(*TopologySpec){
		"strategy.type: unknown strategy":                func(s *TopologySpec) { s.Strategy.Type = "Eternal" },
		"strategy.ttl: time: unknown unit":               func(s *TopologySpec) { s.Strategy.TTL = "7d" },
		"strategy.ttl: -1h is no time":                   func(s *TopologySpec) { s.Strategy.TTL = "-1h" },
		"strategy.ttl: only a Sticky address":            func(s *TopologySpec) { s.Strategy = Strategy{"Elastic", "1h"} },
		"subnets: ParseAddr":                             func(s *TopologySpec) { s.Subnets[0].Ranges = []Range{{"10.0.0.7", "ten"}} },
		`podSelector: unknown operator "Gt"`:             func(s *TopologySpec) { s.PodSelector.MatchExpressions = []Requirement{{"a", "Gt", nil}} },
		`namespaceSelector: unknown operator "Contains"`: func(s *TopologySpec) { s.NamespaceSelector.MatchExpressions = []Requirement{{"a", "Contains", nil}} },
	} {
		object := PodSubnetTopology{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: TopologySpec{Priority: 3, Subnets: []Source{{ID: "a"}}, Strategy: Strategy{Type: "Sticky"}}}
		change(&object.Spec)
		got, err := object.Read()
		if err == nil || !strings.Contains(err.Error(), "PodSubnetTopology db: "+want) || got.Name != "db" || got.Priority != 3 || len(got.Sources) > 0 {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
}

func anyClaim(t *rapid.T) topology.Claim {
	c := topology.Claim{Addr: rapid.SampledFrom([]netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("2001:db8::7")}).Draw(t, "address"),
		Topology: "db", Subnet: "subnet-a", Namespace: "ns", Pod: "db-0"}
	if c.Keep, c.TTL = topology.Sticky, time.Duration(rapid.IntRange(300, 8760*3600).Draw(t, "ttl"))*time.Second; rapid.Bool().Draw(t, "fixed") {
		c.Keep, c.TTL, c.StatefulSet = topology.Fixed, 0, topology.Workload{Name: "db", UID: "u"}
	}
	c.Status = topology.Status{Phase: rapid.SampledFrom([]topology.Phase{"", topology.Free, topology.OnItsWay, topology.Bound, topology.Releasing, topology.Contested}).Draw(t, "phase"),
		PodUID: rapid.SampledFrom([]string{"", "uid"}).Draw(t, "pod"), Node: "n1", ENI: "eni-1", To: rapid.SampledFrom([]string{"", "n2"}).Draw(t, "to"), ToENI: rapid.SampledFrom([]string{"", "eni-2"}).Draw(t, "to ENI"),
		FreeSince: rapid.SampledFrom([]time.Time{{}, time.Unix(1_800_000_000, 0)}).Draw(t, "free"), Moves: anyCount(t, "moves")}
	return c
}

// What one leader writes the next one reads, by way of the API server.
func TestAClaimIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyClaim(t)
		object, err := NewAddressClaim(c)
		if err != nil {
			t.Fatal(err)
		}
		wire, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var read AddressClaim
		if err := json.Unmarshal(wire, &read); err != nil {
			t.Fatal(err)
		}
		got, err := read.Read()
		if diff := cmp.Diff(c, got, sameValues); diff != "" || err != nil {
			t.Errorf("(-written +read):\n%s%v", diff, err)
		}
	})
	if _, err := NewAddressClaim(topology.Claim{Addr: netip.MustParseAddr("10.0.0.7"), Keep: topology.Elastic}); err == nil {
		t.Error("an address that nobody keeps has a claim")
	}
}

func TestAClaimThatCantBeReadSaysWhy(t *testing.T) {
	for want, change := range map[string]func(*AddressClaim){
		"address: ParseAddr": func(a *AddressClaim) { a.Spec.Address = "ten" },
		"address: the claim of 2001:db8::7 is called 20010db8000000000000000000000007": func(a *AddressClaim) { a.Name, a.Spec.Address = strings.Repeat("0", 32), "2001:db8::7" },
		"ttl: time: invalid duration":      func(a *AddressClaim) { a.Spec.Keep = "TTL" },
		"workload: it is no StatefulSet":   func(a *AddressClaim) { a.Spec.Workload.Kind = "Job" },
		`keep: unknown word "Always"`:      func(a *AddressClaim) { a.Spec.Keep = "Always" },
		`status: unknown phase "Sleeping"`: func(a *AddressClaim) { a.Status.Phase = "Sleeping" },
	} {
		a := claimOf("10.0.0.7", "10.0.0.7")
		change(a)
		if got, err := a.Read(); err == nil || !strings.Contains(err.Error(), "AddressClaim "+a.Name+": ") || !strings.Contains(err.Error(), want) || got.Addr.IsValid() {
			t.Errorf("%s: %+v, %v", want, got, err)
		}
	}
}

func TestASubnetAsTopologiesGoByIt(t *testing.T) {
	said := func(use, state, zone string) *Subnet {
		return &Subnet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: SubnetSpec{Use: use}, Status: SubnetStatus{State: state, Zone: zone, V4: "10.0.0.0/24",
			Reserved: []CloudReservation{{CIDR: "10.0.0.16/28", ID: "r"}}}}
	}
	for _, tt := range []struct {
		use, state, zone       string
		ready, full, exclusive bool
	}{
		{"Exclusive", "Ready", "a", true, false, true},
		{"Shared", "Low", "a", true, false, false},
		{"Shared", "Full", "a", true, true, false},
		{"Shared", "Missing", "a", false, false, false},
		{"Shared", "Unmanaged", "a", false, false, false},
		{"Disabled", "Ready", "a", false, false, false}, // the status comes later
		{"Shared", "Ready", "", false, false, false},
		{"Shared", "", "a", false, false, false},
	} {
		got, err := said(tt.use, tt.state, tt.zone).ForTopologies(4, 1)
		want := topology.Subnet{ID: "s", Zone: tt.zone, V4: netip.MustParsePrefix("10.0.0.0/24"), Ready: tt.ready, Full: tt.full, Exclusive: tt.exclusive,
			Reserved: []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}, KeptFirst: 4, KeptLast: 1}
		if diff := cmp.Diff(want, got, sameValues); diff != "" || err != nil {
			t.Errorf("%+v (-want +got):\n%s%v", tt, diff, err)
		}
	}
	bad := said("Shared", "Ready", "a")
	bad.Status.V6 = "fd00::"
	if got, err := bad.ForTopologies(4, 1); got.Ready || err == nil || !strings.Contains(err.Error(), "Subnet s: v6: ") {
		t.Errorf("%+v, %v", got, err)
	}
}
