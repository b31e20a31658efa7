package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/sim"
)

// What one failure keeps from being tried a moment later.
func TestAFailureHoldsItsObjectAndNothingElse(t *testing.T) {
	all := []scope{of(looks), assignsTo("eni-1"), assignsTo("eni-2"), releasesOf("eni-1"), releasesOf("eni-2"), newENIsIn("subnet-a"), newENIsIn("subnet-b")}
	calls := map[string]call{
		"Describe":          {op: "Describe"},
		"AssignAddresses":   {op: "AssignAddresses", key: eniKey("eni-1"), id: "eni-1", subnet: "subnet-a", count: 1},
		"UnassignAddresses": {op: "UnassignAddresses", key: eniKey("eni-1"), id: "eni-1"},
		"DeleteInterface":   {op: "DeleteInterface", key: eniKey("eni-1"), id: "eni-1"},
		"CreateInterface":   {op: "CreateInterface", key: intentKey("t"), subnet: "subnet-a"},
	}
	own := map[string]scope{"Describe": of(looks), "AssignAddresses": assignsTo("eni-1"), "UnassignAddresses": releasesOf("eni-1"),
		"DeleteInterface": releasesOf("eni-1"), "CreateInterface": newENIsIn("subnet-a")}
	for _, kind := range cloud.Kinds() {
		for op, c := range calls {
			w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
			a := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"}).agent(&life{killAt: -1}, w.log)
			a.Cloud = &knowing{}
			for range 5 { // whatever is drawn, the last one is about a minute
				a.applyResult(result{call: &c, err: &cloud.Error{Op: op, Kind: kind}}, a.backoffs.next(0))
			}
			now := time.Duration(0)
			for _, v := range a.backoffs {
				now = max(now, v.until-1)
			}
			for _, c := range [...]class{looks, grows, gives} {
				_, held := a.backoffs[of(c)]
				whole := kind == cloud.ErrThrottled || kind == cloud.ErrUnavailable || op == "Describe" && kind != cloud.ErrSubnetFull
				if want := whole && c == classOf(op); held != want {
					t.Errorf("%s: %v: all %s left alone: %t, want %t", op, kind, c, held, want)
				}
			}
			for _, s := range all {
				is := a.backoffs.active(s, now) || kind == cloud.ErrThrottled && a.refuses(s.class, now)
				mine := s == own[op] || kind == cloud.ErrThrottled && s.class == own[op].class
				elsewhere := kind == cloud.ErrSubnetFull || op == "CreateInterface" && slices.Contains([]error{cloud.ErrLimit, cloud.ErrUnknown}, kind)
				if want := mine && !elsewhere; is != want {
					t.Errorf("%s: %v: %s left alone: %t, want %t; all: %v", op, kind, s, is, want, a.backoffs.lines(now))
				}
			}
		}
	}
}
