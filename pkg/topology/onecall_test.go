package topology

import (
	"strings"
	"testing"
)

// onC is a claim that a call may move to b, of a pod that is on c meanwhile.
var onC = with(calling, func(s *Status) { s.To, s.PodUID = "c", "3" })

func released(node string) Attachment {
	at := on(node)
	at.Accepted, at.Released = true, true
	return at
}

// A claim says to which ENI a call in one goes before it is sent, and for as long as it may take effect.
func TestAClaimSaysWhereACallMayMoveIt(t *testing.T) {
	bound := Status{Phase: Bound, PodUID: "2", Node: "b", ENI: "eni-b", Moves: 1}
	late := with(bound, func(s *Status) { s.ToENI = "eni-b" })
	for _, tt := range []struct {
		name string
		was  Status
		is   Facts
		want Status
	}{
		{"before the call", moving, Facts{Pod: podOn("b", "2"), At: released("a"), OneCall: true, Target: "eni-b"}, calling},
		{"not where it takes two", moving, Facts{Pod: podOn("b", "2"), At: released("a"), Target: "eni-b"}, moving},
		{"not before its node has ended with it", moving, Facts{Pod: podOn("b", "2"), At: on("a"), OneCall: true, Target: "eni-b"}, moving},
		{"not before that is accepted, though it says nothing", moving, Facts{Pod: podOn("b", "2"), At: Attachment{Known: true, Node: "a", ENI: "eni-a", NodeGone: true}, OneCall: true, Target: "eni-b"}, moving},
		{"while the call is under way", calling, Facts{Pod: podOn("b", "2"), Late: true}, calling},
		{"while nobody knows where it is", calling, Facts{Pod: podOn("b", "2")}, calling},
		{"until it is there", calling, Facts{Pod: podOn("b", "2"), At: on("b")}, bound},
		{"and longer, if another call may come", calling, Facts{Pod: podOn("b", "2"), At: on("b"), Late: true}, late},
		{"and no longer then", late, Facts{Pod: podOn("b", "2"), At: on("b")}, bound},
		{"the ENI has no room any more", calling, Facts{Pod: podOn("b", "2"), At: released("a"), OneCall: true, Target: "eni-x"}, with(moving, func(s *Status) { s.ToENI = "eni-x" })},
		{"and a call may come", calling, Facts{Pod: podOn("b", "2"), At: released("a"), OneCall: true, Target: "eni-x", Late: true}, calling},
		{"the cloud has refused the call", calling, Facts{Pod: podOn("b", "2"), At: released("a"), Target: "eni-b"}, moving},
		{"its pod is on a third node", calling, Facts{Pod: podOn("c", "3"), At: released("a"), OneCall: true, Late: true}, onC},
		{"its pod is back, and has it only when no call can take it", calling, Facts{Pod: podOn("a", "3"), At: on("a"), Late: true}, with(calling, func(s *Status) { s.To, s.PodUID = "a", "3" })},
		{"then it has it", with(calling, func(s *Status) { s.To, s.PodUID = "a", "3" }), Facts{Pod: podOn("a", "3"), At: on("a")}, Status{Phase: Bound, PodUID: "3", Node: "a", ENI: "eni-a"}},
		{"its pod is gone", calling, Facts{Pod: noPod, At: released("a"), Late: true}, Status{Phase: Free, Node: "a", ENI: "eni-a", ToENI: "eni-b", FreeSince: noon}},
		{"people end it", calling, Facts{Deleted: true, Pod: noPod, At: released("a"), Late: true}, Status{Phase: Releasing, Node: "a", ENI: "eni-a", ToENI: "eni-b"}},
	} {
		if got := Next(fixed(tt.was), tt.is, noon); got.Claim.Status != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got.Claim.Status, tt.want)
		}
	}
}

// As long as a call may move an address to one ENI it goes to no other one, and is not given up.
func TestALateCallKeepsAnAddressFromAllOtherENIs(t *testing.T) {
	ending := with(calling, func(s *Status) { s.Phase, s.PodUID, s.To = Releasing, "", "" })
	b, c := podOn("b", "2"), podOn("c", "3")
	for _, tt := range []struct {
		name  string
		was   Status
		is    Facts
		want  Action
		waits bool
	}{
		{"it is asked for again", calling, Facts{Pod: b, At: released("a"), OneCall: true, Target: "eni-b", Late: true}, Reassign, false},
		{"its node has to accept that it goes", moving, Facts{Pod: b, At: Attachment{Known: true, Node: "a", ENI: "eni-a", NodeGone: true}, OneCall: true, Target: "eni-b"}, Reassign, false},
		{"by two calls, where one is refused now", calling, Facts{Pod: b, At: released("a"), Target: "eni-b", Late: true}, Unassign, false},
		{"it is on no ENI", calling, Facts{Pod: b, At: nowhere, Target: "eni-b", Late: true}, Assign, false},
		{"its ENI can't carry it", calling, Facts{Pod: b, At: nowhere, Late: true}, Nothing, true},
		{"its pod is elsewhere", onC, Facts{Pod: c, At: released("a"), OneCall: true, Late: true}, Nothing, true},
		{"and it is on no ENI", onC, Facts{Pod: c, At: nowhere, Late: true}, Nothing, true},
		{"the call has come meanwhile", onC, Facts{Pod: c, At: on("b"), Late: true}, Withdraw, false},
		{"its node has ended with it", onC, Facts{Pod: c, At: released("b"), Late: true}, Nothing, true},
		{"it ends", ending, Facts{Deleted: true, Pod: noPod, At: released("a"), Late: true}, Nothing, true},
		{"it ends, and is on no ENI", ending, Facts{Deleted: true, Pod: noPod, At: nowhere, Late: true}, Nothing, true},
	} {
		got := Next(fixed(tt.was), tt.is, noon)
		waits := strings.Contains(got.Wait.Message, "a call of before may still move 10.0.0.7 to eni-b")
		if got.Action != tt.want || waits != tt.waits || got.Claim.Status != tt.was {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if late := (Facts{At: released("a"), Late: true}); late.MayUnassign(fixed(calling)) {
		t.Error("it is taken where it is, for a late call to find it free")
	}
	if inOne := (Facts{At: released("a"), OneCall: true, Target: "eni-b"}); inOne.MayUnassign(fixed(moving)) || !inOne.MayUnassign(fixed(free)) {
		t.Error("it is taken by two calls though one can move it, or not at all though nobody needs it")
	}
}
