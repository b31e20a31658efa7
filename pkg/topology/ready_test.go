package topology

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestATopologyThatCannotBeServedSaysWhy(t *testing.T) {
	older := Topology{Name: "older", Created: dayOne.Add(-time.Hour), Sources: []Source{{"s-z", ranges("28-40")}}}
	for _, tt := range []struct {
		name   string
		of     Strategy
		inZ    string
		change func(*Cluster, *Topology)
		want   Unready
	}{
		{"an exclusive subnet", Sticky, "", func(*Cluster, *Topology) {}, Unready{}},
		{"ranges of it", Fixed, "16-31 32", func(*Cluster, *Topology) {}, Unready{}},
		{"a shared one for addresses that nobody keeps", Elastic, "", func(k *Cluster, _ *Topology) { k.Subnets[1].Exclusive = false }, Unready{}},
		{"a shared one", Sticky, "", func(k *Cluster, _ *Topology) { k.Subnets[1].Exclusive = false },
			Unready{"SubnetNotExclusive", "subnet s-z is not Exclusive, and no ranges of it are named that could be reserved in the cloud: name some, or set use: Exclusive on the Subnet"}},
		{"a range of a shared one", Sticky, "16-32", func(k *Cluster, _ *Topology) {
			k.Subnets[1].Exclusive, k.Subnets[1].Reserved = false, []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}
		}, Unready{"SubnetNotExclusive", "subnet s-z is not Exclusive, and 10.0.0.32/32 is not reserved in the cloud yet; if that lasts, the condition Reserved of the Subnet says why"}},
		{"a range that is reserved", Sticky, "16-31", func(k *Cluster, _ *Topology) {
			k.Subnets[1].Exclusive, k.Subnets[1].Reserved = false, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/27")}
		}, Unready{}},
		{"a range of another subnet", Sticky, "10.0.1.4-10.0.1.7", func(*Cluster, *Topology) {}, Unready{"RangeOutsideSubnet", "10.0.1.4-10.0.1.7 is not in subnet s-z, which has 10.0.0.0/24"}},
		{"two of its own", Sticky, "16-31 31-40", func(*Cluster, *Topology) {},
			Unready{"RangeOverlap", "10.0.0.31-10.0.0.40 of subnet s-z overlaps with a range of topology t: remove one of them"}},
		{"one of an older topology", Sticky, "16-31", func(k *Cluster, of *Topology) {
			of.Created = dayOne
			k.Topologies = append(k.Topologies, older)
		}, Unready{"RangeOverlap", "10.0.0.16-10.0.0.31 of subnet s-z overlaps with a range of topology older: remove one of them"}},
		{"one of a younger topology is that one's affair", Sticky, "16-31", func(k *Cluster, of *Topology) {
			of.Created = older.Created.Add(-time.Hour)
			k.Topologies = append(k.Topologies, older)
		}, Unready{}},
		{"the same addresses of another subnet", Sticky, "16-31", func(k *Cluster, of *Topology) {
			other := older
			other.Sources = []Source{{"s-x", ranges("16-31")}}
			of.Created = dayOne
			k.Topologies = append(k.Topologies, other)
		}, Unready{}},
		{"one subnet that is missing", Sticky, "", func(k *Cluster, _ *Topology) { k.Subnets = k.Subnets[:1] }, Unready{}},
		{"all of them", Sticky, "", func(k *Cluster, _ *Topology) { k.Subnets = nil }, Unready{"NoSubnet",
			"none of its subnets is ready: the operator does not know s-z, s-y (correct that, or name it in cloud.subnets or cloud.subnetTags of operator.yaml)"}},
		{"none is ready", Sticky, "", func(k *Cluster, _ *Topology) { k.Subnets[0].Ready, k.Subnets[1].Ready = false, false }, Unready{"NoSubnet",
			"none of its subnets is ready: not ready: s-z, s-y (`enipoolctl cluster subnets` says why)"}},
	} {
		k, of := twoZones(tt.of, "", tt.inZ)
		tt.change(k, &of)
		if got := Check(of, k.Topologies, k.Subnets); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestWhereAPodMayRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		of     Strategy
		change func(*Cluster, *Pod)
		zones  []string
		cause  Cause
	}{
		{"wherever there is room", Sticky, func(*Cluster, *Pod) {}, []string{"y", "z"}, None},
		{"no subnet is full", Sticky, func(k *Cluster, _ *Pod) { k.Taken = taken("16-17") }, []string{"y"}, None},
		{"not where the cloud has none left", Sticky, func(k *Cluster, _ *Pod) { k.Subnets[1].Full = true }, []string{"y"}, None},
		{"though the cloud has none left it has those that it keeps", Sticky, func(k *Cluster, _ *Pod) {
			k.Subnets[1].Full, k.Subnets[1].Reserved = true, []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}
		}, []string{"y", "z"}, None},
		{"the cloud has none left", Elastic, func(k *Cluster, _ *Pod) { k.Subnets[0].Full, k.Subnets[1].Full = true, true }, nil, NoRoom},
		{"not in a zone whose subnet is not ready", Sticky, func(k *Cluster, _ *Pod) { k.Subnets[0].Ready = false }, []string{"z"}, None},
		{"where it has an address", Sticky, func(k *Cluster, _ *Pod) {
			k.Claims.Put(Claim{Addr: addr("10.0.1.20"), Topology: "t", Subnet: "s-y", Namespace: "db", Pod: "db-0"})
		}, []string{"y"}, None},
		{"though its subnet is none of the topology's any more", Sticky, func(k *Cluster, _ *Pod) {
			k.Subnets = append(k.Subnets, inZone("s-x", "x"))
			k.Claims.Put(Claim{Addr: addr("99"), Topology: "t", Subnet: "s-x", Namespace: "db", Pod: "db-0"})
		}, []string{"x"}, None},
		{"where it can have one of each family", Sticky, func(k *Cluster, _ *Pod) {
			k.Families = []eni.Family{eni.IPv4, eni.IPv6}
			k.Topologies[0].Sources[0].Ranges = nil
			k.Subnets[1].V6 = netip.MustParsePrefix("2001:db8::/64")
		}, []string{"z"}, None},
		{"nowhere: all is full", Sticky, func(k *Cluster, _ *Pod) {
			k.Subnets = append(k.Subnets, inZone("s-a", "a"), inZone("s-zz", "zz"))
			k.Taken = taken("16-17 10.0.1.16-10.0.1.17")
		}, nil, NoRoom},
		{"nowhere: it is of no StatefulSet", Fixed, func(_ *Cluster, p *Pod) { p.StatefulSet = Workload{} }, nil, NoStatefulSet},
		{"a topology that is not ready is no reason to take the next", Sticky, func(k *Cluster, _ *Pod) {
			k.Topologies = append(k.Topologies, Topology{Name: "next", Priority: -1, Strategy: Elastic, Sources: []Source{{Subnet: "s-z"}}})
			k.Subnets[0].Exclusive, k.Subnets[1].Exclusive = false, false
		}, nil, TopologyNotReady},
		{"no subnet is known", Sticky, func(k *Cluster, _ *Pod) { k.Subnets = nil }, nil, TopologyNotReady},
	} {
		k, _ := twoZones(tt.of, "10.0.1.16-10.0.1.17", "16-17")
		p := member("db-0")
		tt.change(k, &p)
		class, why := Classify(p, k)
		if class.Topology != "t" || !slices.Equal(class.Zones, tt.zones) || why.Cause != tt.cause {
			t.Errorf("%s: %+v, %+v; want %v, %s", tt.name, class, why, tt.zones, tt.cause)
		}
	}
	k, _ := twoZones(Fixed, "", "")
	k.Topologies[0].Pods = selects("app", "y")
	if class, why := Classify(member("db-0"), k); class.Topology != "" || class.Zones != nil || why.Cause != None {
		t.Errorf("a pod that no topology is for: %+v, %+v", class, why)
	}
}

// Nothing else tells of a name that is misspelt beside one that is right.
func TestATopologyThatIsServedSaysWhichOfItsSubnetsAreNone(t *testing.T) {
	k, of := twoZones(Sticky, "", "")
	if got := Lacking(of, k.Subnets); got != "" {
		t.Errorf("all are ready: %s", got)
	}
	of.Sources = append(of.Sources, Source{Subnet: "s-typo"})
	k.Subnets[0].Ready = false
	want := "the operator does not know s-typo (correct that, or name it in cloud.subnets or cloud.subnetTags of operator.yaml); not ready: s-y (`enipoolctl cluster subnets` says why)"
	if got := Lacking(of, k.Subnets); got != want || Check(of, k.Topologies, k.Subnets).Reason != "" {
		t.Errorf("%s", got)
	}
}

// Of several zones each full subnet is named.
func TestAPodWithoutRoomIsToldOfAllZones(t *testing.T) {
	k, _ := twoZones(Elastic, "", "16-17")
	k.Subnets[0].Full, k.Taken = true, taken("16-17")
	_, why := Classify(member("db-0"), k)
	want := "no address of topology t is left in zone y, z (s-z: none of 2 in its ranges, s-y: the cloud has none left): add a subnet, or wait for other pods of it to end"
	if why.Cause != NoRoom || why.Message != want {
		t.Errorf("%+v, want %s", why, want)
	}
}
