package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
)

// card is an ENI in subnet-a with addresses of a family in states: f free, u used, l used and lost, r releasing, h held.
func card(number int, f eni.Family, states string) pool.ENI {
	e := pool.ENI{ID: fmt.Sprintf("eni-%c", 'a'+number), Index: number, Subnet: "subnet-a"}
	for i, c := range states {
		a := pool.Address{Address: eni.Address{Addr: numbered(f, 256*number+i)}}
		switch c {
		case 'u', 'l':
			a.State, a.Lost = eni.Used, c == 'l'
		case 'r':
			a.State = eni.Releasing
		case 'h':
			a.State = eni.Held
		}
		e.Addresses = append(e.Addresses, a)
	}
	return e
}

// show writes steps as words.
func show(steps []pool.Step) string {
	var words []string
	for _, s := range steps {
		words = append(words, strings.TrimSpace(fmt.Sprintf("%s %d %s", s.Do, s.Count, s.ENI)))
	}
	return strings.Join(words, ", ")
}

// TestTheOperatorIsAPlanAhead has the cases in which the two plans together are not today's, each with what the operator does
// instead.
func TestTheOperatorIsAPlanAhead(t *testing.T) {
	v4 := []eni.Family{eni.IPv4}
	for _, test := range []struct {
		name            string
		c               pool.Config
		s               pool.Snapshot
		target          int
		today, operator string
	}{
		{"a lost address takes room at the agent alone", pool.Config{},
			pool.Snapshot{Families: v4, Limits: eni.Limits{ENIs: 1, V4: 5}, ENIs: []pool.ENI{card(0, eni.IPv4, "fffl")}}, 4, "", "assign 1 eni-a"},
		{"an ENI made beforehand is judged by what the node may hold when the release has gone", pool.Config{Mode: pool.BestEffort, PreAllocateENI: 2},
			pool.Snapshot{Families: v4, Limits: eni.Limits{ENIs: 2, V4: 4}, ENIs: []pool.ENI{card(0, eni.IPv4, "ffff")},
				Subnets: []pool.Subnet{{ID: "subnet-a", Free: 3, New: true}}}, 0, "create 1", ""},
		{"a burstable node's addresses of another mode count once they are restored", pool.Config{Mode: pool.Burstable, Multiple: 1, ReturnENIs: true, FirstENI: 1},
			pool.Snapshot{Families: v4, Limits: eni.Limits{ENIs: 2, V4: 9}, ENIs: []pool.ENI{card(1, eni.IPv4, ""), card(2, eni.IPv4, "r")}}, 0,
			"assign 8 eni-b", "assign 7 eni-b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.s.Subnets == nil {
				test.s.Subnets = []pool.Subnet{{ID: "subnet-a", Free: 200}}
			}
			plan := pool.Plan(test.c, test.s, test.target)
			spec, status, facts := divided(test.c, test.s, plan, test.target)
			today, operator := show(OperatorSteps(plan)), show(Plan(spec, status, facts))
			if today != test.today || operator != test.operator {
				t.Errorf("today %q, the operator %q; want %q and %q", today, operator, test.today, test.operator)
			}
		})
	}
}

// ENIs that are a topology's take room, those that are detached or being made do not: facts have the latter.
func TestOtherENIsInTheOperatorsPlan(t *testing.T) {
	spec, status := fullNode(40)
	status.Limits.ENIs = 3
	facts := Facts{Subnets: []pool.Subnet{{ID: "subnet-a", Free: 200, New: true}}}
	for _, test := range []struct {
		other ENI
		want  string
	}{
		{ENI{ID: "eni-x", Index: 2, State: Attached, Topology: "db"}, ""},
		{ENI{ID: "eni-x", Index: 2, State: ENILeaving}, ""},
		{ENI{ID: "eni-x", Index: 2, State: Detached}, "create 8"},
		{ENI{ID: "eni-x", State: Creating}, "create 8"},
	} {
		s := status.clone()
		s.ENIs = append(s.ENIs, test.other)
		if got := show(Plan(spec, s, facts)); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.other.State, test.other.Topology, got, test.want)
		}
	}
}

// What the spec has besides slots is there because the operator would plan something else without it.
func TestTheOperatorNeedsWhatTheSpecSays(t *testing.T) {
	v4, subnets := []eni.Family{eni.IPv4}, []pool.Subnet{{ID: "subnet-a", Free: 200, New: true}}
	unlinked := card(1, eni.IPv4, "hh")
	unlinked.NoLink = true
	for _, test := range []struct {
		name         string
		c            pool.Config
		s            pool.Snapshot
		target       int
		forget       func(*Spec)
		want, forgot string
	}{
		{"held addresses", pool.Config{}, pool.Snapshot{Limits: eni.Limits{ENIs: 2, V4: 9}, ENIs: []pool.ENI{card(0, eni.IPv4, "ffhh")}}, 4,
			func(p *Spec) { p.Held = nil }, "assign 2 eni-a", ""},
		{"ENIs without a link", pool.Config{}, pool.Snapshot{Limits: eni.Limits{ENIs: 2, V4: 5}, ENIs: []pool.ENI{card(0, eni.IPv4, "ffff"), unlinked}}, 6,
			func(p *Spec) { p.NoLink = nil }, "", "assign 2 eni-b"},
		{"maxPods", pool.Config{Mode: pool.Burstable, Multiple: 1}, pool.Snapshot{Limits: eni.Limits{ENIs: 2, V4: 9}, MaxPods: 5, ENIs: []pool.ENI{card(0, eni.IPv4, "uu")}}, 2,
			func(p *Spec) { p.Pool.MaxAllocate = 0 }, "assign 3 eni-a", "assign 6 eni-a"},
		{"idle ENIs", pool.Config{Mode: pool.Burstable, Multiple: 1, ReturnENIs: true},
			pool.Snapshot{Limits: eni.Limits{ENIs: 2, V4: 5}, ENIs: []pool.ENI{card(0, eni.IPv4, "uu"), card(1, eni.IPv4, "ff")}}, 4,
			func(p *Spec) { p.Idle = nil }, "", "assign 2 eni-a, assign 2 eni-b"},
		{"idle ENIs, and a plan that returns none", pool.Config{Mode: pool.Burstable, Multiple: 1, ReturnENIs: true},
			pool.Snapshot{Limits: eni.Limits{ENIs: 2, V4: 5}, ENIs: []pool.ENI{card(0, eni.IPv4, "uu"), card(1, eni.IPv4, "ff")}}, 4,
			func(p *Spec) { p.Pool.ReturnENIs = false }, "", "assign 2 eni-a, assign 2 eni-b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.s.Families, test.s.Subnets = v4, subnets
			plan := pool.Plan(test.c, test.s, test.target)
			spec, status, facts := divided(test.c, test.s, plan, test.target)
			if today, got := show(OperatorSteps(plan)), show(Plan(spec, status, facts)); today != test.want || got != test.want {
				t.Errorf("today %q, the operator %q, want %q", today, got, test.want)
			}
			test.forget(&spec)
			if got := show(Plan(spec, status, facts)); got != test.forgot {
				t.Errorf("without it %q, want %q", got, test.forgot)
			}
		})
	}
}
