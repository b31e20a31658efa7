package capacity

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

// big is the instance of the document's table.
var big = Instance{Limits: eni.Limits{ENIs: 8, V4: 40}}

func subnet(t testing.TB, cidr string, reserved int) Subnet {
	t.Helper()
	prefix := netip.MustParsePrefix(cidr)
	n, err := Usable(prefix, reserved)
	if err != nil {
		t.Fatalf("%s: %v", cidr, err)
	}
	return Subnet{ID: cidr, CIDR: prefix, Available: n}
}

func made(t testing.TB, in Input) Plan {
	t.Helper()
	p, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The table of section 3.1.3 with what the document leaves out: what is wasted.
func TestEveryRowOfTheDocumentsTable(t *testing.T) {
	for _, tt := range []struct {
		prefix, available, pods      int
		nodes, enis, ips, waste, per int
	}{
		{24, 254, 32, 7, 1, 33, 23, 91},
		{24, 254, 64, 3, 2, 66, 56, 220},
		{24, 254, 128, 1, 4, 132, 122, 480},
		{23, 510, 32, 15, 1, 33, 15, 29},
		{23, 510, 64, 7, 2, 66, 48, 94},
		{23, 510, 128, 3, 4, 132, 114, 224},
		{23, 510, 256, 1, 7, 263, 247, 484},
		{22, 1022, 32, 30, 1, 33, 32, 31}, // the row with an empty cell too many
		{22, 1022, 64, 15, 2, 66, 32, 31},
		{22, 1022, 128, 7, 4, 132, 98, 96},
		{22, 1022, 256, 3, 7, 263, 233, 228},
		{22, 1022, 312, 3, 8, 320, 62, 61},
		{21, 2046, 32, 62, 1, 33, 0, 0},
		{21, 2046, 64, 31, 2, 66, 0, 0},
		{21, 2046, 128, 15, 4, 132, 66, 32},
		{21, 2046, 256, 7, 7, 263, 205, 100},
		{21, 2046, 312, 6, 8, 320, 126, 62},
	} {
		t.Run(fmt.Sprintf("/%d with %d pods", tt.prefix, tt.pods), func(t *testing.T) {
			s := subnet(t, fmt.Sprintf("10.0.0.0/%d", tt.prefix), 2)
			p := made(t, Input{Subnets: []Subnet{s}, Instance: big, MaxPods: tt.pods, Quota: 500})
			want := Carries{
				ENIsPerNode: tt.enis, IPsPerNode: tt.ips, Available: tt.available,
				Nodes: tt.nodes, Pods: tt.nodes * tt.pods, ENIs: tt.nodes * tt.enis, FullENIs: tt.available / 40,
				Used: tt.nodes * tt.ips, Wasted: tt.waste, WastedShare: Share(tt.per), Limit: Addresses,
			}
			for _, got := range []Carries{p.Subnets[0].Carries, p.Zones[0].Carries, p.Carries} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestRowsThatTheTableDoesNotHave(t *testing.T) {
	small := Instance{Limits: eni.Limits{ENIs: 8, V4: 30}}
	for _, tt := range []struct {
		name                     string
		cidr                     string
		reserved                 int
		instance                 Instance
		pods                     int
		enis, ips, nodes, wasted int
		notes                    []string
	}{
		{"one more pod than the machine carries", "10.0.0.0/24", 2, big, 313, 8, 320, 0, 254, []string{
			"max-pods 313 is above the 312 pods that such a node carries: planned with 312",
			"subnet 10.0.0.0/24 can't carry a node: it has 254 addresses, a node takes 320"}},
		{"a subnet smaller than an ENI", "10.0.0.0/28", 2, big, 32, 1, 33, 0, 14, []string{
			"subnet 10.0.0.0/28 can't carry a node: it has 14 addresses, a node takes 33; it can't fill one ENI of 40 either"}},
		{"an exact fit of one full ENI", "10.0.0.0/27", 2, small, 29, 1, 30, 1, 0, nil},
		{"a gateway takes one off: 62 become 61", "10.0.0.0/21", 3, big, 32, 1, 33, 61, 32, nil},
		{"a gateway takes one off: 31 become 30", "10.0.0.0/21", 3, big, 64, 2, 66, 30, 65, nil},
		{"c16m64 has 30 addresses an ENI", "10.0.0.0/24", 2, small, 32, 2, 34, 7, 16, nil},
		{"c16m64 completely full", "10.0.0.0/24", 2, small, 232, 8, 240, 1, 14, nil},
		{"bare metal", "10.0.0.0/24", 2, Instance{Limits: eni.Limits{ENIs: 1, V4: 40}, MainNIC: true}, 39, 1, 40, 6, 14, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := made(t, Input{Subnets: []Subnet{subnet(t, tt.cidr, tt.reserved)}, Instance: tt.instance, MaxPods: tt.pods, Quota: 500})
			got := []int{p.ENIsPerNode, p.IPsPerNode, p.Nodes, p.Wasted}
			if diff := cmp.Diff([]int{tt.enis, tt.ips, tt.nodes, tt.wasted}, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(append([]string{}, tt.notes...), p.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The cluster that the document is for: 5,000 nodes and 150,000 pods.
func TestTheDocumentsClusterOfFiveThousandNodes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		in    Input
		want  Answer
		notes []string
	}{
		{"near 30 pods a node it takes 5 subnets of /17 or 3 of /16", Input{MaxPods: 30}, Answer{
			Nodes: 5000, NodesMore: 5000, PodsMore: 150000, IPsMore: 155000, ENIs: 5000, ENIsMore: 4500,
			Smallest: []New{{16, 2}, {18, 1}, {19, 1}},
			Alike:    []New{{16, 3}, {17, 5}, {18, 10}},
		}, nil},
		{"with 128 pods a node it takes 11 of /16", Input{MaxPods: 128}, Answer{
			Nodes: 5000, NodesMore: 5000, PodsMore: 150000, IPsMore: 660000, ENIs: 20000, ENIsMore: 19500,
			Smallest: []New{{16, 10}, {20, 1}, {21, 1}},
			Alike:    []New{{16, 11}},
		}, nil},
		{"with 20 pods a node it takes more nodes", Input{MaxPods: 20}, Answer{
			Nodes: 7500, NodesMore: 7500, PodsMore: 150000, IPsMore: 157500, ENIs: 7500, ENIsMore: 7000,
			Smallest: []New{{16, 2}, {17, 1}},
			Alike:    []New{{16, 3}, {17, 5}, {18, 10}},
		}, []string{"5000 nodes of 20 pods are 100000 pods: 150000 pods need 7500 nodes, or max-pods 30"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Instance, tt.in.Quota, tt.in.Reserved, tt.in.Need = big, 500, 2, Need{5000, 150000}
			tt.want.Need = tt.in.Need
			p := made(t, tt.in)
			if diff := cmp.Diff(&tt.want, p.Answer); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(append([]string{}, tt.notes...), p.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}
