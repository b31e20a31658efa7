package capacity

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
)

func TestBaidusRulesForCPUsAndMemory(t *testing.T) {
	const g = 1024
	for _, tt := range []struct {
		kind            Kind
		cpus, memory    int
		enis, ips, pods int
		main            bool
	}{
		{BCC, 1, 1 * g, 1, 2, 1, false},
		{BCC, 2, 1*g + 1, 2, 8, 14, false},
		{BCC, 2, 4 * g, 2, 8, 14, false},
		{BCC, 4, 8 * g, 4, 8, 28, false},
		{BCC, 4, 8*g + 1, 4, 16, 60, false},
		{BCC, 8, 32 * g, 8, 16, 120, false},
		{BCC, 9, 32*g + 1, 8, 30, 232, false},
		{BCC, 16, 64 * g, 8, 30, 232, false},
		{BCC, 16, 62 * g, 8, 30, 232, false}, // as a kubelet reports 64 GiB
		{BCC, 32, 64*g + 1, 8, 40, 312, false},
		{BCC, 32, 128 * g, 8, 40, 312, false},
		{BBC, 0, 0, 1, 40, 39, true},
		{EBC, 4, 0, 4, 40, 156, false},
		{EBC, 128, 0, 8, 40, 312, false},
		{EBCMain, 0, 0, 1, 40, 39, true},
	} {
		m, err := Baidu(tt.kind, tt.cpus, tt.memory)
		want := Instance{Limits: eni.Limits{ENIs: tt.enis, V4: tt.ips}, MainNIC: tt.main, Apart: !tt.main}
		if diff := cmp.Diff(want, m); err != nil || diff != "" || m.Pods() != tt.pods || m.Validate() != nil {
			t.Errorf("%s with %d CPUs and %d MiB: %v, %d pods\n%s", tt.kind, tt.cpus, tt.memory, err, m.Pods(), diff)
		}
	}
}

// The instance has its primary ENI besides, which carries none of the pods.
func TestAnInstanceHasItsPrimaryENIToo(t *testing.T) {
	for name, want := range map[string]eni.Limits{
		"bcc.g5.c16m64": {ENIs: 9, V4: 30, NoPrimary: true},
		"bbc.s3":        {ENIs: 1, V4: 40},
	} {
		m, err := BaiduType(name)
		got := m.CloudLimits()
		if err != nil || got != want || (got.ENIs-got.FirstIndex())*got.PerENI(eni.IPv4) != m.Pods() {
			t.Errorf("%s: %+v for %d pods, %v; want %+v", name, got, m.Pods(), err, want)
		}
	}
	if l := (Instance{Limits: eni.Limits{ENIs: 4, V4: 15}}).CloudLimits(); l.ENIs != 4 || l.NoPrimary {
		t.Errorf("of another cloud: %+v", l)
	}
}

func TestBaiduInstancesThatCanNotBe(t *testing.T) {
	for _, tt := range []struct {
		kind         Kind
		cpus, memory int
		want         string
	}{
		{BCC, 0, 4096, "0 CPUs: must be at least 1"},
		{EBC, -1, 0, "-1 CPUs: must be at least 1"},
		{BCC, 1, 1023, "1023 MiB of memory: must be at least 1 GiB"},
	} {
		if _, err := Baidu(tt.kind, tt.cpus, tt.memory); fmt.Sprint(err) != tt.want {
			t.Errorf("%s: %v, want %s", tt.kind, err, tt.want)
		}
	}
}

func TestABaiduTypeTellsItsInstance(t *testing.T) {
	for name, want := range map[string]Instance{
		"bcc.g5.c16m64": {Limits: eni.Limits{ENIs: 8, V4: 30}, Apart: true}, // 30 by the table, though the document's text says 40
		"bcc.ic4.c2m4":  {Limits: eni.Limits{ENIs: 2, V4: 8}, Apart: true},
		"bbc.s3":        {Limits: eni.Limits{ENIs: 1, V4: 40}, MainNIC: true},
	} {
		if got, err := BaiduType(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "bcc", "bcc.g5", "bcc.g5.c16", "bcc.g5.16m64", "bcc.g5.cxm64", "bcc.g5.c1m99999999999", "ebc.l5.c128m256", "m5.large"} {
		if got, err := BaiduType(name); !errors.Is(err, ErrKind) {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	if _, err := BaiduType("bcc.g5.c0m4"); fmt.Sprint(err) != "0 CPUs: must be at least 1" {
		t.Error(err)
	}
}

func TestASubnetIsUsableWithoutWhatTheCloudKeeps(t *testing.T) {
	for _, tt := range []struct {
		cidr     string
		reserved int
		want     int
		err      string
	}{
		{"10.0.0.0/24", 2, 254, "<nil>"},
		{"10.0.0.0/24", 5, 251, "<nil>"},
		{"10.0.0.0/30", 2, 2, "<nil>"},
		{"10.0.0.0/30", 5, 0, "a /30 is too small: of its 4 addresses the cloud keeps 5"},
		{"10.0.0.0/31", 2, 0, "a /31 is too small: of its 2 addresses the cloud keeps 2"},
		{"10.0.0.1/32", 2, 0, "a /32 is too small: of its 1 addresses the cloud keeps 2"},
		{"10.0.0.1/24", 2, 0, "has bits set behind its mask; its network is 10.0.0.0/24"},
		{"2001:db8::/64", 2, 0, "must be an IPv4 network like 10.0.0.0/24"},
	} {
		if got, err := Usable(netip.MustParsePrefix(tt.cidr), tt.reserved); got != tt.want || fmt.Sprint(err) != tt.err {
			t.Errorf("%s: %d, %v", tt.cidr, got, err)
		}
	}
}

func TestWhatCanNotBePlanned(t *testing.T) {
	for _, tt := range []struct {
		want   string
		change func(*Input)
	}{
		{"0 ENIs: a node needs at least 1", func(in *Input) { in.Instance.ENIs = 0 }},
		{"1 addresses an ENI: must be at least 2, as the primary address is for no pod", func(in *Input) { in.Instance.V4 = 1 }},
		{"9 ENIs of 5000 addresses: no instance has more than 256 of 4096", func(in *Input) { in.Instance.Limits = eni.Limits{ENIs: 9, V4: 5000} }},
		{"8 ENIs: an instance that uses its main interface has no other", func(in *Input) { in.Instance.MainNIC = true }},
		{"max-pods 0: must be at least 1", func(in *Input) { in.MaxPods = 0 }},
		{"quota, used ENIs, reserved addresses and needs must not be negative", func(in *Input) { in.Need.Pods = -1 }},
		{"subnet b: -1 addresses available: must not be negative", func(in *Input) { in.Subnets[1].Available = -1 }},
		{"subnet a: given twice", func(in *Input) { in.Subnets[1].ID = "a" }},
		{"subnets a and c overlap", func(in *Input) { in.Subnets[2].CIDR = netip.MustParsePrefix("10.0.0.128/25") }},
	} {
		in := Input{Instance: big, MaxPods: 32, Subnets: []Subnet{
			{ID: "a", CIDR: netip.MustParsePrefix("10.0.0.0/24")}, {ID: "b"}, {ID: "c", CIDR: netip.MustParsePrefix("10.0.1.0/24")},
		}}
		if _, err := Make(in); err != nil {
			t.Fatal(err)
		}
		tt.change(&in)
		if _, err := Make(in); fmt.Sprint(err) != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// The example of two /24: each carries one node of 128 pods, together they carry 3.
func TestMixingSubnetsUsesWhatIsLeftInEach(t *testing.T) {
	in := Input{Instance: big, MaxPods: 128, Subnets: []Subnet{subnet(t, "10.0.0.0/24", 2), subnet(t, "10.0.1.0/24", 2)}}
	if p := made(t, in); p.Nodes != 2 || p.AtMost != 2 || p.Wasted != 244 {
		t.Errorf("not mixed: %+v", p.Carries)
	}
	in.Mix = true
	if p := made(t, in); p.Nodes != 3 || p.AtMost != 3 || p.Wasted != 508-3*132 {
		t.Errorf("mixed: %+v", p.Carries)
	}
	in.Subnets[1].Zone = "other"
	if p := made(t, in); p.Nodes != 2 || p.AtMost != 2 {
		t.Errorf("a node must not mix zones: %+v", p.Carries)
	}
	in.Subnets[1].Zone, in.Subnets[1].Exclusive = "", true
	if p := made(t, in); p.Nodes != 1 || p.AtMost != 1 || p.Subnets[1].Limit != Exclusive {
		t.Errorf("a node must not use an exclusive subnet: %+v", p.Carries)
	}
}

// 17 and 16 addresses are 33, but the second ENI costs an address more.
func TestASpreadNodePaysForEachENI(t *testing.T) {
	in := Input{Instance: big, MaxPods: 32, Mix: true, Subnets: []Subnet{{ID: "a", Available: 17}, {ID: "b", Available: 16}}}
	if p := made(t, in); p.Nodes != 0 || p.AtMost != 1 {
		t.Errorf("33 addresses: %+v", p)
	}
	in.Subnets[1].Available = 17
	if p := made(t, in); p.Nodes != 1 || p.ENIs != 2 || p.Used != 34 {
		t.Errorf("34 addresses: %+v", p)
	}
	in.Quota, in.Need = 1, Need{Nodes: 1}
	if p := made(t, in); p.Nodes != 0 || p.Limit != ENIQuota || p.Answer.ENIsMore != 1 {
		t.Errorf("a quota of 1: %+v", p)
	}
	in.Quota, in.Need = 0, Need{}
	in.Instance.ENIs = 1
	if p := made(t, in); p.Nodes != 0 {
		t.Errorf("one ENI lies in one subnet: %+v", p)
	}
}

func TestTheQuotaOfTheVPCBinds(t *testing.T) {
	in := Input{Instance: big, MaxPods: 128, Quota: 100, UsedENIs: 10, Subnets: []Subnet{subnet(t, "10.0.0.0/16", 2)}}
	p := made(t, in)
	if p.Nodes != 22 || p.ByIPs != 496 || *p.ByQuota != 22 || p.ENIs != 88 || p.Limit != ENIQuota || p.Subnets[0].Nodes != 496 {
		t.Errorf("%+v", p)
	}
	if diff := cmp.Diff([]string{"the addresses are enough for 496 nodes with 1984 ENIs; of a quota of 100 there are 90 left: that is 22 nodes"}, p.Notes); diff != "" {
		t.Error(diff)
	}
	in.Need = Need{Nodes: 30}
	if a := made(t, in).Answer; a.NodesMore != 8 || a.ENIs != 120 || a.ENIsMore != 30 || a.IPsMore != 0 || a.Met {
		t.Errorf("30 nodes: %+v", a)
	}
	in.Need = Need{Nodes: 22}
	if p := made(t, in); !p.Answer.Met || p.Answer.ENIs != 88 || p.Limit != MaxPods || len(p.Notes) > 0 { // that 496 would not fit is no matter
		t.Errorf("22 nodes: %+v, %+v", p, p.Answer)
	}
	in.Need = Need{Nodes: 22, Pods: 23 * 128} // pods that take more nodes than are named, and there is no quota for them
	if p := made(t, in); p.Answer.Met || p.Answer.ENIsMore != 2 || p.Limit != ENIQuota || len(p.Notes) != 2 {
		t.Errorf("pods of 23 nodes: %+v, %+v", p, p.Answer)
	}
	in.Quota, in.Need = 0, Need{}
	if p := made(t, in); p.Nodes != 496 || p.ByQuota != nil || p.Limit != Addresses {
		t.Errorf("no quota: %+v", p)
	}
}

// A main interface is no ENI of the VPC.
func TestMainInterfacesTakeNoQuota(t *testing.T) {
	m, _ := Baidu(BBC, 0, 0)
	p := made(t, Input{Instance: m, MaxPods: 39, Quota: 1, Subnets: []Subnet{subnet(t, "10.0.0.0/24", 2)}})
	if p.Nodes != 6 || p.ByQuota != nil {
		t.Errorf("%+v", p)
	}
	if a := made(t, Input{Instance: m, MaxPods: 39, Quota: 1, Need: Need{Nodes: 6}}).Answer; a.ENIs != 0 || a.ENIsMore != 0 {
		t.Errorf("%+v", a)
	}
}

func TestNoLargerSubnetIsToldThanOneThatDoes(t *testing.T) {
	a := made(t, Input{Instance: big, MaxPods: 32, Reserved: 2, Need: Need{Pods: 50 * 32}}).Answer
	if diff := cmp.Diff([]New{{21, 1}, {22, 2}, {23, 4}, {24, 8}}, a.Alike); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]New{{22, 1}, {23, 1}, {24, 1}}, a.Smallest); diff == "" {
		t.Error("three small subnets instead of at most two")
	}
}

func TestOverlapsAreNamedInOrder(t *testing.T) {
	list := []Subnet{
		{ID: "small", CIDR: netip.MustParsePrefix("10.0.0.0/25")}, {ID: "unknown"}, {ID: "large", CIDR: netip.MustParsePrefix("10.0.0.0/24")},
	}
	for range 2 {
		if a, b, found := Overlap(list); !found || a.ID != "large" || b.ID != "small" {
			t.Errorf("%s and %s, %v", a.ID, b.ID, found)
		}
		slices.Reverse(list)
	}
}

func TestZonesAreApart(t *testing.T) {
	p := made(t, Input{Instance: big, MaxPods: 32, Zones: []string{"c", "a"}, Subnets: []Subnet{
		{ID: "b2", Zone: "b", Available: 66, Exclusive: true}, {ID: "a2", Zone: "a", Available: 33}, {ID: "a1", Zone: "a", Available: 70},
	}})
	var got []string
	for _, z := range p.Zones {
		got = append(got, fmt.Sprint(z.Zone, " ", z.Nodes, " ", z.Limit))
	}
	for _, s := range p.Subnets {
		got = append(got, fmt.Sprint(s.Subnet, " ", s.Nodes, " ", s.Limit))
	}
	want := []string{"a 3 addresses", "b 0 exclusive", "c 0 noSubnet", "a1 2 addresses", "a2 1 addresses", "b2 0 exclusive"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"subnet b2 is exclusive: it carries no node", "zone c has no subnet: it carries no node"}, p.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestAShareHasOneDecimal(t *testing.T) {
	for _, tt := range []struct {
		part, of int
		want     string
	}{{0, 0, "0.0"}, {23, 254, "9.1"}, {14, 14, "100.0"}, {1, 2000, "0.1"}, {1, 2001, "0.0"}} {
		text, err := shareOf(tt.part, tt.of).MarshalJSON()
		if err != nil || string(text) != tt.want {
			t.Errorf("%d of %d: %s, %v", tt.part, tt.of, text, err)
		}
	}
}

// By hand: an m5.large has 9 prefixes on an ENI, 110 pods take 7 of them and one primary address.
// Of a /22 the first and the last of 64 blocks are broken: the cloud keeps 4 addresses and 1.
func TestPrefixesAreCountedWhole(t *testing.T) {
	large := Instance{Limits: eni.Limits{ENIs: 3, V4: 10}}.InPrefixes(ofEC2)
	if large.V4 != 145 || large.Pods() != 432 || large.Validate() != nil {
		t.Errorf("%+v for %d pods, %v", large, large.Pods(), large.Validate())
	}
	for _, tt := range []struct {
		available, pods, nodes, used int
	}{
		{1019, 110, 8, 8 * (7*16 + 1)}, // 1019/113 are 9 nodes, but 62/7 blocks are 8
		{251, 110, 2, 2 * (7*16 + 1)},
		{251, 97, 2, 2 * (7*16 + 1)}, // the last block is one pod's
		{251, 96, 2, 2 * (6*16 + 1)},
		{251, 145, 1, 10*16 + 2}, // 144 are on one ENI
		{11, 16, 0, 0},
	} {
		p, err := Make(Input{Subnets: []Subnet{{ID: "a", Available: tt.available}}, Instance: large, MaxPods: tt.pods, Reserved: 5})
		if err != nil || p.Nodes != tt.nodes || p.Used != tt.used || p.Subnets[0].Nodes != tt.nodes {
			t.Errorf("%d pods in %d addresses: %d nodes with %d addresses, %v; want %d with %d", tt.pods, tt.available, p.Nodes, p.Used, err, tt.nodes, tt.used)
		}
	}
}

func TestAnENIHasWholePrefixes(t *testing.T) {
	m := Instance{Limits: eni.Limits{ENIs: 3, V4: 10, V4Block: ofEC2}}
	if err := m.Validate(); fmt.Sprint(err) != "10 addresses an ENI: besides the primary one they must be whole prefixes of 16" {
		t.Error(err)
	}
}
