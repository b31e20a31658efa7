package crd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sources returns the subnets with an ID.
func sources(ids ...string) (list []Source) {
	for _, id := range ids {
		list = append(list, Source{ID: id})
	}
	return list
}

// inRange has the topology's only subnet give addresses of a range alone.
func inRange(from, to string) func(*PodSubnetTopology) {
	return func(t *PodSubnetTopology) { t.Spec.Subnets[0].Ranges = []Range{{from, to}} }
}

// asks has it select pods by one requirement.
func asks(key, operator string, values ...string) func(*PodSubnetTopology) {
	return func(t *PodSubnetTopology) {
		t.Spec.PodSelector.MatchExpressions = []Requirement{{key, operator, values}}
	}
}

// Each rule of a PodSubnetTopology accepts what is right and refuses what it is there for.
func TestTheAPIServerHoldsTheRulesOfTopologies(t *testing.T) {
	c := server(t)
	ctx := context.Background()
	of := func(strategy string) func() *PodSubnetTopology {
		return func() *PodSubnetTopology {
			return &PodSubnetTopology{Spec: TopologySpec{Subnets: sources("subnet-0a1"), Strategy: Strategy{Type: strategy}}}
		}
	}
	save := func(t *PodSubnetTopology) error { return c.Update(ctx, t) }
	judge(t, c, of("Sticky"), "db", []attempt[*PodSubnetTopology]{
		{"a range", inRange("10.0.0.7", "10.0.0.9"), ""},
		{"one of IPv6", inRange("2001:db8::7", "2001:db8::ff"), ""},
		{"of two families", inRange("10.0.0.7", "2001:db8::ff"), "from an address to one of the same family"},
		{"of what is no address", inRange("10.0.0.7", "10.0.0.256"), "from an address to one of the same family"},
		{"a ttl", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "1h30m" }, ""},
		{"the shortest ttl", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "5m" }, ""},
		{"the longest", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "8760h" }, ""},
		{"a shorter one", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "299s" }, "from 5m to 8760h"},
		{"a longer one", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "8761h" }, "from 5m to 8760h"},
		{"a ttl that Go does not read", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "7d" }, "should match"},
		{"another type", func(t *PodSubnetTopology) { t.Spec.Strategy.Type = "Fixed" }, "the type is for good"},
		{"pods with a label", asks("app", "In", "db", "cache"), ""},
		{"pods that have it", asks("app", "Exists"), ""},
		{"with any value of none", asks("app", "In"), "In and NotIn need values"},
		{"that have it as a value", asks("app", "Exists", "db"), "Exists and DoesNotExist take none"},
		{"compared in another way", asks("app", "Gt", "1"), "Unsupported value"},
		{"the highest priority", func(t *PodSubnetTopology) { t.Spec.Priority = 1_000_000 }, ""},
		{"a higher one", func(t *PodSubnetTopology) { t.Spec.Priority = 1_000_001 }, "less than or equal to 1000000"},
		{"as many subnets as there can be", func(t *PodSubnetTopology) { t.Spec.Subnets = sources(texts(16, "s")...) }, ""},
		{"more than that", func(t *PodSubnetTopology) { t.Spec.Subnets = sources(texts(17, "s")...) }, "must have at most 16 items"},
		{"none", func(t *PodSubnetTopology) { t.Spec.Subnets = sources() }, "spec.subnets"},
		{"one twice", func(t *PodSubnetTopology) { t.Spec.Subnets = sources("s", "s") }, "Duplicate value"},
		{"warm addresses", func(t *PodSubnetTopology) { t.Spec.Warm = 64 }, ""},
		{"too many of them", func(t *PodSubnetTopology) { t.Spec.Warm = 65 }, "less than or equal to 64"},
	}, save)
	judge(t, c, of("Elastic"), "web", []attempt[*PodSubnetTopology]{
		{"two subnets", func(t *PodSubnetTopology) { t.Spec.Subnets = sources("a", "b") }, ""},
		{"a range for what nobody keeps", inRange("10.0.0.7", "10.0.0.9"), "ranges need strategy Sticky or Fixed"},
		{"a ttl for that", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "1h" }, "only a Sticky address has a ttl"},
	}, save)
	judge(t, c, of("Fixed"), "db", []attempt[*PodSubnetTopology]{
		{"a range to keep", inRange("10.0.0.7", "10.0.0.9"), ""},
		{"a ttl for what is kept", func(t *PodSubnetTopology) { t.Spec.Strategy.TTL = "1h" }, "only a Sticky address has a ttl"},
	}, save)
	judge(t, c, of("Fixed"), strings.Repeat("n", 63), []attempt[*PodSubnetTopology]{{"the longest name", func(*PodSubnetTopology) {}, ""}}, save)
	long := of("Fixed")()
	long.Name = strings.Repeat("n", 64)
	if err := c.Create(ctx, long); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "pods have it as a label") {
		t.Errorf("a longer name: %v", err)
	}
	told := func(is metav1.ConditionStatus) func(*PodSubnetTopology) {
		return func(t *PodSubnetTopology) {
			t.Status.Zones = []string{"a", "b"}
			t.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: is, Reason: "NoSubnet", Message: strings.Repeat("m", 1024), LastTransitionTime: metav1.Now(), ObservedGeneration: 2}}
		}
	}
	judge(t, c, of("Fixed"), "db", []attempt[*PodSubnetTopology]{
		{"a condition", told(metav1.ConditionFalse), ""},
		{"a state that none has", told("Perhaps"), "Unsupported value"},
	}, func(t *PodSubnetTopology) error { return c.Status().Update(ctx, t) })
	claimsAreHeld(t, c) // here, since a server of its own takes long to start
}

// claimOf is a claim of the address, under a name.
func claimOf(name, address string) *AddressClaim {
	return &AddressClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: ClaimSpec{Topology: "db", Subnet: "subnet-0a1", Address: address, Namespace: "db", Pod: "db-0",
		Keep: "Workload", Workload: &Workload{Kind: "StatefulSet", Name: "db", UID: "u"}}}
}

// claimsAreHeld checks that each rule of an AddressClaim accepts what is right and refuses what it is there for.
func claimsAreHeld(t *testing.T, c client.Client) {
	ctx := context.Background()
	const v4, v6, digits = "10.0.0.7", "2001:db8::7", "20010db8000000000000000000000007"
	sticky := func(ttl string) *AddressClaim {
		made := claimOf(v4, v4)
		made.Spec.Keep, made.Spec.TTL, made.Spec.Workload = "TTL", ttl, nil
		return made
	}
	with := func(change func(*ClaimSpec)) *AddressClaim {
		made := claimOf(v4, v4)
		change(&made.Spec)
		return made
	}
	for _, tt := range []struct {
		what    string
		made    *AddressClaim
		refused string
	}{
		{"an address", claimOf(v4, v4), ""},
		{"one of IPv6", claimOf(digits, v6), ""},
		{"under another name", claimOf("10.0.0.8", v4), "so that no address is claimed twice"},
		{"one of IPv6 under its own", claimOf("2001-db8--7", v6), "the name is the address in 32 hexadecimal digits"},
		{"what is no address", claimOf("10.0.0.256", "10.0.0.256"), "not a canonical address"},
		{"in a form of its own", claimOf(digits, "2001:DB8::7"), "not a canonical address"},
		{"for a time", sticky("168h"), ""},
		{"for no time at all", sticky(""), "TTL needs a ttl"},
		{"for too short a time", sticky("1m"), "from 5m to 8760h"},
		{"for a time in days", sticky("7d"), "should match"},
		{"for no workload", with(func(s *ClaimSpec) { s.Workload = nil }), "Workload a workload"},
		{"for both", with(func(s *ClaimSpec) { s.TTL = "1h" }), "neither has the other"},
		{"for a Deployment", with(func(s *ClaimSpec) { s.Workload.Kind = "Deployment" }), "Unsupported value"},
		{"for ever", with(func(s *ClaimSpec) { s.Keep = "Always" }), "Unsupported value"},
	} {
		err := c.Create(ctx, tt.made)
		if tt.refused == "" && err != nil || tt.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.refused)
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, tt.made)); err != nil {
			t.Fatal(err)
		}
	}
	fresh := func() *AddressClaim { return claimOf(v4, v4) }
	judge(t, c, fresh, v4, []attempt[*AddressClaim]{
		{"labels", func(a *AddressClaim) { a.Labels = map[string]string{"a": "b"} }, ""},
		{"another topology", func(a *AddressClaim) { a.Spec.Topology = "web" }, "a claim is for good"},
		{"another subnet", func(a *AddressClaim) { a.Spec.Subnet = "subnet-0a2" }, "a claim is for good"},
		{"another namespace", func(a *AddressClaim) { a.Spec.Namespace = "web" }, "a claim is for good"},
		{"another pod", func(a *AddressClaim) { a.Spec.Pod = "db-1" }, "a claim is for good"},
		{"another workload", func(a *AddressClaim) { a.Spec.Workload.UID = "v" }, "a claim is for good"},
		{"another kind", func(a *AddressClaim) { a.Spec.Keep, a.Spec.TTL, a.Spec.Workload = "TTL", "1h", nil }, "a claim is for good"},
	}, func(a *AddressClaim) error { return c.Update(ctx, a) })
	judge(t, c, fresh, v4, []attempt[*AddressClaim]{
		{"a phase", func(a *AddressClaim) { a.Status.Phase, a.Status.Node = "Bound", "n1" }, ""},
		{"one of no kind", func(a *AddressClaim) { a.Status.Phase = "Lost" }, "Unsupported value"},
	}, func(a *AddressClaim) error { return c.Status().Update(ctx, a) })

	if err := c.Create(ctx, fresh()); err != nil {
		t.Fatal(err)
	}
	second := fresh()
	second.Spec.Pod = "db-1"
	if err := c.Create(ctx, second); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second claim of the address: %v", err)
	}
	var list AddressClaimList
	if err := c.List(ctx, &list, client.MatchingFields{"spec.namespace": "db"}); err != nil || len(list.Items) != 1 {
		t.Error(fmt.Sprint(len(list.Items), " claims of a namespace: "), err)
	}
}
