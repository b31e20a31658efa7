package demo

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// All else is tested by the demonstration itself, which fails if it does not show
// what it promises.

func TestTheAgentsConfigurationsDifferInNameAndStrategyAlone(t *testing.T) {
	for _, n := range newNodes() {
		c, err := agentconf.Parse([]byte(n.configText()))
		if err != nil {
			t.Fatal(err)
		}
		if c.Node != n.name || c.Pool.Scale.Strategy.String() != n.strategy || c.Pool.Scale.Delay != delay || c.Cache != n.cache.Path {
			t.Errorf("%s: %+v", n.name, c)
		}
	}
}

func TestCallsThatOverlapAreOneRound(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one := func(from, to int) call {
		c := call{began: noon.Add(time.Duration(from) * time.Second)}
		if to > 0 {
			c.ended = noon.Add(time.Duration(to) * time.Second)
		}
		return c
	}
	for _, tt := range []struct {
		name  string
		calls []call
		want  int
	}{
		{"none", nil, 0},
		{"one", []call{one(0, 2)}, 1},
		{"side by side", []call{one(0, 2), one(1, 3)}, 1},
		{"a row of which each overlaps the next", []call{one(0, 2), one(1, 3), one(2, 4)}, 1},
		{"a short one inside a long one", []call{one(0, 9), one(1, 2), one(3, 4)}, 1},
		{"one after the other", []call{one(0, 2), one(3, 5)}, 2},
		{"two and one", []call{one(0, 2), one(1, 2), one(3, 5)}, 2},
		{"the last goes on", []call{one(0, 2), one(3, 0)}, 2},
		{"one that goes on has no end", []call{one(0, 0), one(30, 32), one(60, 62)}, 1},
	} {
		if got := countRounds(tt.calls); got != tt.want {
			t.Errorf("%s: %d rounds, want %d", tt.name, got, tt.want)
		}
	}
}

func TestAnENIIsOneRoundUntilItIsAttached(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	one := func(method string, from, to int) call {
		return call{Method: method, began: noon.Add(time.Duration(from) * time.Second), ended: noon.Add(time.Duration(to) * time.Second)}
	}
	for _, tt := range []struct {
		name  string
		calls []call
		want  int
	}{
		{"two made side by side", []call{one("Create", 0, 1), one("Create", 2, 3), one("Attach", 4, 5), one("Attach", 5, 6)}, 1},
		{"one made after the other", []call{one("Create", 0, 1), one("Attach", 2, 3), one("Create", 4, 5), one("Attach", 6, 7)}, 2},
		{"the second is not attached yet", []call{one("Create", 0, 1), one("Attach", 2, 3), one("Create", 4, 5), one("Describe", 6, 7)}, 2},
		{"addresses while one is made", []call{one("Create", 0, 1), one("Assign", 2, 3), one("Attach", 4, 5)}, 1},
	} {
		if got := countRounds(untilAttached(tt.calls)); got != tt.want {
			t.Errorf("%s: %d rounds, want %d", tt.name, got, tt.want)
		}
	}
}

func TestALineOfTheLogInColumns(t *testing.T) {
	for _, tt := range []struct {
		log, want string
		worth     bool
	}{
		{`{"time":"2026-03-01T12:00:00Z","level":"INFO","msg":"create","subnet":"subnet-1","count":16,"reason":"demand needs 48 slots"}`,
			"create  subnet-1           16  demand needs 48 slots", true},
		{`{"level":"INFO","msg":"adopt","eni":"eni-1","device":"eth1","reason":"it is attached"}`,
			"adopt   eni-1 eth1             it is attached", true},
		{`{"level":"INFO","msg":"add","addresses":"10.0.0.3 10.0.0.4 ...","count":9,"reason":"they are assigned"}`,
			"add     10.0.0.3 ...        9  they are assigned", true},
		{`{"level":"INFO","msg":"node cache built","enis":1,"reason":"there is none"}`, "node cache built: there is none enis=1", true},
		{`{"level":"WARN","msg":"started","error":"full"}`, "started: error=full", true},
		{`{"level":"INFO","msg":"started"}`, "started", false},
		{`panic: out of memory`, "panic: out of memory", true},
	} {
		e := parseEntry([]byte(tt.log))
		if got := e.line(); got != tt.want || e.isWorthShowing() != tt.worth {
			t.Errorf("%s\nis %q, %t\nwant %q, %t", tt.log, got, e.isWorthShowing(), tt.want, tt.worth)
		}
	}
}

// look is a state with an address a letter, on two ENIs: u is used, f free, r
// releasing and a blank is not there.
func look(first, second string) ipam.State {
	s := ipam.State{ENIs: []eni.Interface{{ID: "eni-a"}, {ID: "eni-b", Index: 1}}}
	for index, letters := range []string{first, second} {
		for i, letter := range letters {
			a := eni.Address{Addr: netip.AddrFrom4([4]byte{10, 0, byte(index), byte(i)}), ENI: index, State: eni.Free}
			switch letter {
			case ' ':
				continue
			case 'u':
				a.State, a.Owner = eni.Used, &eni.Owner{Pod: "web"}
			case 'r':
				a.State = eni.Releasing
			}
			s.Addresses = append(s.Addresses, a)
		}
	}
	return s
}

func TestTheENIOrderIsBrokenOnlyIfAnEarlierAddressWasFreeAllTheTime(t *testing.T) {
	for _, tt := range []struct {
		name           string
		first, second  string
		first2, after2 string
		broken         bool
	}{
		{"nothing happens", "uf", "uf", "uf", "uf", false},
		{"the earlier one is filled", "ff", "f", "uf", "f", false},
		{"both, at last the later one", "uf", "f", "uu", "u", false},
		{"the later one while the earlier one is free", "uf", "f", "uf", "u", true},
		{"of two free ones one is left", "ff", "f", "uf", "u", true},
		{"the earlier one was freed in between", "uu", "f", "uf", "u", false},
		{"the earlier one came in between", "u ", "f", "uf", "u", false},
		{"the earlier one is on its way back", "ur", "f", "ur", "u", false},
		{"the later ENI came and was used", "uf", " ", "uf", "u", true},
	} {
		err := checkENIOrder(look(tt.first, tt.second), look(tt.first2, tt.after2))
		if (err != nil) != tt.broken {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestATimelineHasARowForEachChangeThatMatters(t *testing.T) {
	at := func(ms int, l ...level) moment { return moment{time.Duration(ms) * time.Millisecond, l} }
	n := func(used, waiting, have, target int, why string) level {
		return level{used: used, waiting: waiting, have: have, target: target, why: why}
	}
	var times []int
	for _, r := range pickRows([]moment{
		at(0, n(1, 0, 16, 16, "steady")),
		at(20, n(9, 0, 16, 16, "steady")),       // pods alone
		at(40, n(16, 3, 16, 16, "steady")),      // the first waits
		at(60, n(16, 9, 16, 48, "up")),          // at once after that: one row
		at(200, n(16, 20, 16, 48, "steady")),    // a reason of one tick
		at(400, n(16, 20, 32, 48, "steady")),    // addresses
		at(800, n(36, 0, 32, 48, "steady")),     // nobody waits
		at(1000, n(1, 0, 32, 48, "hold-delay")), // held
		at(1200, n(1, 0, 32, 48, "hold-delay")),
		at(1400, n(0, 0, 32, 48, "hold-delay")), // the end of a change of pods
	}) {
		times = append(times, int(r.at.Milliseconds()))
	}
	if diff := cmp.Diff([]int{0, 60, 400, 800, 1000, 1400}, times); diff != "" {
		t.Error(diff)
	}
}
