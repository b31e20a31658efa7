package capacity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// ofEC2 is a prefix that EC2 delegates: docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html
var ofEC2 = eni.Block{Bits: 28, Size: 16}

func drawInstance(t *rapid.T) Instance {
	m := Instance{Limits: eni.Limits{
		ENIs: rapid.IntRange(1, 15).Draw(t, "ENIs"),
		V4:   rapid.IntRange(2, 50).Draw(t, "addresses an ENI"),
	}}
	if rapid.IntRange(0, 3).Draw(t, "prefixes") == 0 {
		m = m.InPrefixes(ofEC2)
	}
	return m
}

// rooms are what is left of some subnets, less than a node.
func drawRooms(t *rapid.T, d density, most int) []room {
	var left []room
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, d.ips-1), 0, most).Draw(t, "left") {
		left = append(left, room{n, rapid.IntRange(0, n/d.size).Draw(t, "whole")})
		if d.size == 1 {
			left[len(left)-1].blocks = n
		}
	}
	return left
}

func drawInput(t *rapid.T) Input {
	in := Input{Instance: drawInstance(t), Reserved: rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "reserved")}
	in.MaxPods = rapid.IntRange(1, in.Instance.Pods()).Draw(t, "max-pods")
	in.Places = rapid.SampledFrom([]int{0, 0, rapid.IntRange(0, (in.Instance.Pods()-in.MaxPods)/max(in.Instance.V4Block.Size, 1)).Draw(t, "room")}).Draw(t, "places")
	in.Quota = rapid.SampledFrom([]int{0, 1, 20, 500}).Draw(t, "quota")
	in.UsedENIs = rapid.IntRange(0, 25).Draw(t, "used ENIs")
	in.Mix = rapid.Bool().Draw(t, "mix")
	for i, n := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 3000), rapid.IntRange(0, 60000)), 0, 6).Draw(t, "available") {
		in.Subnets = append(in.Subnets, Subnet{
			ID:        fmt.Sprint("s", i),
			Zone:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"),
			Available: n,
			Exclusive: rapid.IntRange(0, 9).Draw(t, "exclusive") == 0,
		})
	}
	return in
}

// drawDensity is a node of some max-pods that keeps some places, of as many as it has.
func drawDensity(t *rapid.T, m Instance) (d density, places int) {
	pods := rapid.IntRange(1, m.Pods()).Draw(t, "max-pods")
	size := max(m.Block(eni.IPv4).Size, 1)
	if rapid.Bool().Draw(t, "keeps") {
		places = rapid.IntRange(0, m.Pods()/size-ceilDiv(pods, size)).Draw(t, "places")
	}
	return densityOf(m, pods, places), places
}

func drawn(t *rapid.T, in Input) Plan {
	p, err := Make(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEveryPlanAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p := drawn(t, in)
		all := []Carries{p.Carries}
		alone, zones, size := 0, 0, max(in.Instance.V4Block.Size, 1)
		for _, s := range p.Subnets {
			all, alone = append(all, s.Carries), alone+s.Nodes
			if s.Limit == Addresses && s.Wasted >= s.IPsPerNode+2*in.Instance.V4Block.Size {
				t.Errorf("%s wastes %d: another node of %d fits", s.Subnet, s.Wasted, s.IPsPerNode)
			}
		}
		for _, z := range p.Zones {
			all, zones = append(all, z.Carries), zones+z.Nodes
		}
		for _, c := range all {
			if c.Used < c.Pods+c.ENIs || c.Used >= c.Pods+c.ENIs+max(c.Nodes, 1)*size || c.Wasted != c.Available-c.Used || c.Wasted < 0 || c.Pods != c.Nodes*p.MaxPods {
				t.Errorf("does not add up: %+v", c)
			}
			if c.Pods+c.Nodes*in.Places*size > c.ENIs*in.Instance.PerENI(eni.IPv4) || c.ENIs > c.Nodes*in.Instance.ENIs {
				t.Errorf("too much for the ENIs or the nodes: %+v", c)
			}
		}
		if zones != p.ByIPs || alone > p.ByIPs || p.ByIPs > p.AtMost || !in.Mix && alone != p.AtMost {
			t.Errorf("subnets alone carry %d, zones %d, the cluster %d, at most %d", alone, zones, p.ByIPs, p.AtMost)
		}
		if in.Quota > 0 && p.ENIs > max(in.Quota-in.UsedENIs, 0) {
			t.Errorf("%d ENIs are above the quota", p.ENIs)
		}
		if p.Nodes < p.ByIPs != (p.Limit == ENIQuota) {
			t.Errorf("%d of %d nodes, but the limit is %s", p.Nodes, p.ByIPs, p.Limit)
		}
	})
}

// The bound of mixing grows with the addresses. What mixing finds need not, as it
// does not try all ways; it is never less than without.
func TestMoreAddressesNeverLowerTheBoundOfMixing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Mix = true
		before := drawn(t, in).AtMost
		in.Subnets = append(in.Subnets, Subnet{ID: "new", Zone: "a", Available: rapid.IntRange(0, 500).Draw(t, "more")})
		if after := drawn(t, in).AtMost; after < before {
			t.Errorf("at most %d nodes became %d", before, after)
		}
	})
}

// More of anything never carries less.
func TestMoreNeverCarriesLess(t *testing.T) {
	for what, grow := range map[string]func(*rapid.T, *Input){
		"addresses": func(t *rapid.T, in *Input) {
			in.Mix = false
			i := rapid.IntRange(0, len(in.Subnets)-1).Draw(t, "which")
			in.Subnets[i].Available += rapid.IntRange(1, 500).Draw(t, "more")
		},
		"subnets": func(t *rapid.T, in *Input) {
			in.Mix = false
			in.Subnets = append(in.Subnets, Subnet{ID: "new", Zone: "a", Available: rapid.IntRange(0, 500).Draw(t, "more")})
		},
		"quota":            func(t *rapid.T, in *Input) { in.Quota = max(0, in.Quota) * 2 },
		"no quota":         func(_ *rapid.T, in *Input) { in.Quota = 0 },
		"mixing":           func(_ *rapid.T, in *Input) { in.Mix = true },
		"addresses an ENI": func(_ *rapid.T, in *Input) { in.Mix = false; in.Instance.V4 += max(in.Instance.V4Block.Size, 1) },
		"ENIs a node":      func(_ *rapid.T, in *Input) { in.Mix = false; in.Instance.ENIs++ },
	} {
		t.Run(what, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				in := drawInput(t)
				if len(in.Subnets) == 0 {
					in.Subnets = []Subnet{{ID: "s0", Available: 100}}
				}
				more := in
				more.Subnets = slices.Clone(in.Subnets)
				grow(t, &more)
				in.Mix = in.Mix && more.Mix
				if a, b := drawn(t, in), drawn(t, more); b.Pods < a.Pods || b.Nodes < a.Nodes {
					t.Errorf("%d pods on %d nodes became %d on %d", a.Pods, a.Nodes, b.Pods, b.Nodes)
				}
			})
		})
	}
}

func TestTheOrderOfTheInputIsNoMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		other := in
		other.Subnets = rapid.Permutation(in.Subnets).Draw(t, "order")
		if diff := cmp.Diff(drawn(t, in), drawn(t, other)); diff != "" {
			t.Error(diff)
		}
	})
}

// A mixed node is one that can be built: pods and ENIs are within the instance's
// limits, no address is used twice, no ENI is empty or carries too many.
func TestMixedNodesCanBeBuilt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInstance(t)
		d, places := drawDensity(t, m)
		left := drawRooms(t, d, 8)
		free := slices.Clone(left)
		for _, node := range d.mixNodes(slices.Clone(left)) {
			pods, enis := 0, 0
			for _, p := range node {
				free[p.Subnet].addresses -= ceilDiv(p.Pods, d.size)*d.size + p.ENIs
				free[p.Subnet].blocks -= ceilDiv(p.Pods, d.size)
				pods, enis = pods+p.Pods, enis+p.ENIs
				if places == 0 && p.Pods < p.ENIs || p.Pods < 0 || p.Pods > p.ENIs*m.PerENI(eni.IPv4) || free[p.Subnet].addresses < 0 || free[p.Subnet].blocks < 0 {
					t.Errorf("can't be: %+v of %+v free", p, left[p.Subnet])
				}
			}
			if pods != d.pods || enis > m.ENIs || ceilDiv(pods, d.size)+places > enis*m.PerENI(eni.IPv4)/d.size {
				t.Errorf("a node of %d pods has %d, on %d ENIs of at most %d", d.pods, pods, enis, m.ENIs)
			}
		}
		if d.spreadNode(free) != nil {
			t.Error("one more can be built")
		}
	})
}

// spread is compared with trying everything.
func TestANodeIsFoundIfThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Instance{Limits: eni.Limits{ENIs: rapid.IntRange(1, 4).Draw(t, "ENIs"), V4: rapid.IntRange(2, 6).Draw(t, "addresses")}}
		if rapid.Bool().Draw(t, "prefixes") {
			m = m.InPrefixes(eni.Block{Bits: 30, Size: 4})
		}
		d, _ := drawDensity(t, m)
		left := drawRooms(t, d, 4)
		var most func(i, enis int) int // with exactly that number
		most = func(i, enis int) int {
			best := none
			if i == len(left) && enis == 0 {
				best = 0
			}
			if i < len(left) {
				for j := 0; j <= min(enis, left[i].addresses); j++ {
					whole := min(j*(m.V4-1)/d.size, left[i].blocks, (left[i].addresses-j)/d.size)
					best = max(best, whole*d.size+most(i+1, enis-j))
				}
			}
			return best
		}
		is := false
		for enis := d.enis; enis <= m.ENIs; enis++ {
			is = is || most(0, enis) >= d.pods
		}
		if found := d.spreadNode(left) != nil; found != is {
			t.Errorf("found: %v, there is one: %v", found, is)
		}
	})
}

// A need that is met lacks nothing; one that is not is met when all that is said
// to be missing is there.
func TestWhatIsMissingMeetsTheNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Need = Need{rapid.IntRange(0, 3000).Draw(t, "nodes"), rapid.IntRange(1, 50000).Draw(t, "pods")}
		p := drawn(t, in)
		a := *p.Answer
		if a.Met != (p.Nodes >= in.Need.Nodes && p.Pods >= in.Need.Pods) {
			t.Errorf("granted: %v with %d nodes and %d pods", a.Met, p.Nodes, p.Pods)
		}
		if nothing := a.NodesMore+a.PodsMore+a.IPsMore+a.ENIsMore+len(a.Smallest)+len(a.Alike) == 0; nothing != a.Met {
			t.Errorf("granted: %v, but missing: %+v", a.Met, a)
		}
		if in.Quota > 0 {
			in.Quota += a.ENIsMore
		}
		for _, way := range append([][]New{a.Smallest}, single(a.Alike)...) {
			if len(way) == 0 && a.IPsMore > 0 {
				t.Errorf("no subnets told for %d addresses", a.IPsMore)
			}
			more := in
			more.Mix = false
			more.Quota = 0
			more.Subnets = nil
			for _, n := range way {
				for i := range n.Count {
					more.Subnets = append(more.Subnets, Subnet{ID: fmt.Sprint(n, i), Available: 1<<(32-n.Prefix) - in.Reserved})
				}
			}
			if got := p.ByIPs + drawn(t, more).Nodes; got < a.Nodes {
				t.Errorf("with %v there are %d nodes, need %d", way, got, a.Nodes)
			}
		}
	})
}

func single(list []New) [][]New {
	ways := make([][]New, len(list))
	for i, n := range list {
		ways[i] = []New{n}
	}
	return ways
}

// Of all sets with at most two subnets below the largest size none is smaller.
func TestTheSmallestSubnetsAreTheSmallest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawInstance(t)
		d, _ := drawDensity(t, m)
		need := rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(1, 6000)).Draw(t, "nodes")
		const reserved = 2
		size := func(p int) int {
			if p > smallest {
				return 0
			}
			return 1 << (32 - p)
		}
		carries := func(p int) int {
			if p > smallest {
				return 0
			}
			return d.nodesIn(p, reserved)
		}
		best := -1
		for p := largest + 1; p <= smallest+1; p++ {
			for q := largest + 1; q <= smallest+1; q++ {
				more := max(need-carries(p)-carries(q), 0)
				huge := (more + carries(largest) - 1) / carries(largest)
				if total := huge*size(largest) + size(p) + size(q); best < 0 || total < best {
					best = total
				}
			}
		}
		got, nodes := 0, 0
		for _, n := range d.smallestSubnets(need, reserved) {
			got, nodes = got+n.Count*size(n.Prefix), nodes+n.Count*carries(n.Prefix)
		}
		if got != best || nodes < need {
			t.Errorf("%v: %d addresses for %d nodes, best is %d for %d", d.smallestSubnets(need, reserved), got, nodes, best, need)
		}
	})
}
