package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
	"pgregory.net/rapid"
)

// anyReasons draws what may be known of a node of two ENIs with three slots each and two subnets, and
// its plan's snapshot.
func anyReasons(t *rapid.T) (r reasons, s pool.Snapshot, there []int) {
	chance := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) == 0 }
	now := time.Hour
	spared := map[string]bool{"subnet-a": chance("a is spared"), "subnet-b": chance("b is spared")}
	limits := eni.Limits{ENIs: 3, V4: 4} // one of them the primary address
	r = reasons{now: now, first: 1, families: []eni.Family{eni.IPv4}, view: &view{known: true, limits: limits}, backoffs: backoffs{}, status: &status.Status{},
		full: func(id string) bool { return spared[id] }, look: now + time.Minute, sized: true}
	r.decision.Most = 6
	r.status.Most = 6
	r.demand.owned, r.demand.total = rapid.IntRange(0, 7).Draw(t, "owned"), rapid.IntRange(0, 9).Draw(t, "total")
	s = pool.Snapshot{Families: r.families, Limits: limits, ENIs: []pool.ENI{{ID: "eni-own"}}}
	there = []int{0}
	for i := range rapid.IntRange(0, 2).Draw(t, "ENIs") {
		e := pool.ENI{ID: fmt.Sprint("eni-", i), Index: i + 1, Subnet: rapid.SampledFrom([]string{"subnet-a", "subnet-b", "subnet-x"}).Draw(t, "subnet")}
		s.ENIs, there = append(s.ENIs, e), append(there, rapid.IntRange(0, 3).Draw(t, "there"))
		if chance("its link is lost") {
			r.links.lost = map[string]eni.Interface{e.ID: {ID: e.ID, Device: "eth9"}}
		}
	}
	for _, id := range []string{"subnet-a", "subnet-b"} {
		if !chance("no " + id) {
			r.view.subnets = append(r.view.subnets, cloud.Subnet{ID: id, Free: rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "free"), New: !chance("takes no ENIs")})
		}
	}
	if chance("an ENI is being made") {
		r.creates = []create{{Token: "t", Subnet: "subnet-a", Slots: 3}}
	}
	errs := []error{cloud.ErrForbidden, cloud.ErrUnavailable, cloud.ErrThrottled, cloud.ErrLimit, cloud.ErrNotFound, cloud.ErrUnknown}
	for _, about := range []scope{of(looks), of(grows), of(gives), newENIsIn(""), newENIsIn("subnet-a"), newENIsIn("subnet-b"), fullSubnet("subnet-a"),
		assignsTo("eni-0"), assignsTo("eni-1"), intentOf("t"), adoptionOf("eni-0")} {
		if chance("failed: " + about.String()) {
			r.backoffs[about] = backoff{until: now + time.Duration(rapid.IntRange(-300, 300).Draw(t, "until"))*time.Second, times: 1, err: rapid.SampledFrom(errs).Draw(t, "error")}
		}
	}
	return r, s, there
}

// Whatever is known: each cause is of a kind and has words, the list is ranked and the same when asked
// again, a node that lacks nothing has none, and one that wants more than it can ever have has just that.
func TestCausesAreRankedAndHaveWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, there := anyReasons(t)
		list := r.slotCauses(s, there)
		for _, c := range list {
			if c.Kind == 0 || c.Words == "" && !(r.demand.owned >= r.decision.Most && c.Kind == pool.AddressLimit) {
				t.Fatalf("%+v says nothing", c)
			}
		}
		if again := r.slotCauses(s, there); !slices.Equal(list, again) {
			t.Fatalf("%v\nand then %v", list, again)
		}
		if !slices.Equal(list, pool.Rank(slices.Clone(list))) {
			t.Fatalf("not ranked: %v", list)
		}
		switch most := r.decision.Most; {
		case r.demand.owned < most:
		case r.demand.total <= most && len(list) > 0:
			t.Fatalf("a node with all that it can have and wants: %v", list)
		case r.demand.total > most && (len(list) != 1 || list[0].Kind != pool.AddressLimit || list[0].Slots != r.demand.total-most):
			t.Fatalf("a node that wants %d and can have %d: %v", r.demand.total, most, list)
		}
	})
}

// One ENI with room whose subnet has addresses, whose link is there, whose calls work and of which what comes
// can be taken in is enough: then the supply is in nobody's way. Without any, and without an ENI to come, something is told.
func TestSupplyIsACauseExactlyWhereNothingGivesMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, there := anyReasons(t)
		gives := func(i int) bool {
			e := s.ENIs[i]
			n, known := r.view.subnet(e.Subnet)
			_, lost := r.links.lost[e.ID]
			return e.Index >= r.first && there[i] < 3 && known && n.Free > 0 && !lost && !r.full(n.ID) &&
				!r.backoffs.active(fullSubnet(n.ID), r.now) && !r.backoffs.stands(assignsTo(e.ID), r.now) && !r.backoffs.stands(adoptionOf(e.ID), r.now)
		}
		can := false
		for i := range s.ENIs {
			can = can || gives(i)
		}
		list := r.supply(s, there)
		if can && len(list) > 0 {
			t.Fatalf("an ENI gives more, and in the way are %v", list)
		}
		atLimit := len(s.ENIs) >= s.Limits.ENIs
		if !can && atLimit && len(r.creates) == 0 && len(list) == 0 {
			t.Fatalf("no ENI gives more and none may come, and nothing is in the way: %+v", s)
		}
		full := 0
		for _, c := range list {
			if c.Kind == pool.SubnetFull {
				full++
			}
		}
		if full > 1 {
			t.Fatalf("full subnets are told apart: %v", list)
		}
	})
}

// What is told first is the cause that counts, and no cause of one kind and object twice.
func TestNothingIsToldTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s, there := anyReasons(t)
		r.causes = r.slotCauses(s, there)
		r.demand.waiting = rapid.IntRange(0, 3).Draw(t, "pending")
		r.cache.words = rapid.SampledFrom([]string{"", "node cache: damaged"}).Draw(t, "cache")
		list := r.ranked()
		told := map[pool.Cause]bool{}
		for i, c := range list {
			key := pool.Cause{Kind: c.Kind, Object: c.Object}
			if told[key] || i > 0 && list[i-1].Kind > c.Kind {
				t.Fatalf("%+v of %+v", c, list)
			}
			told[key] = true
		}
		if r.demand.waiting > 0 && len(r.causes) > 0 && len(list) == 0 {
			t.Fatalf("pods wait, and of %v nothing is told", r.causes)
		}
	})
}
