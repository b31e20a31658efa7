package topology

import (
	"strings"
	"testing"
	"time"
)

func fixed(s Status) Claim {
	return Claim{Addr: addr("7"), Topology: "t", Subnet: "s", Namespace: "db", Pod: "db-0", Keep: Fixed, StatefulSet: Workload{"db", "uid-db"}, Status: s}
}

func sticky(s Status) Claim {
	c := fixed(s)
	c.Keep, c.TTL, c.StatefulSet = Sticky, time.Hour, Workload{}
	return c
}

func podOn(node, uid string) PodFacts {
	return PodFacts{Presence: Present, UID: uid, Node: node, Topology: "t"}
}

// showing is a pod whose kubelet shows the address.
func showing(p PodFacts) PodFacts {
	p.Shows = true
	return p
}

func on(node string) Attachment { return Attachment{Known: true, Node: node, ENI: "eni-" + node} }

var (
	noPod   = PodFacts{Presence: Absent}
	nowhere = Attachment{Known: true}
)

// onA is a claim that pod 1 has on node a, and moving one that is on its way from there to pod 2 on b.
var (
	onA    = Status{Phase: Bound, PodUID: "1", Node: "a", ENI: "eni-a"}
	moving = Status{Phase: OnItsWay, PodUID: "2", Node: "a", ENI: "eni-a", To: "b"}
	free   = Status{Phase: Free, Node: "a", ENI: "eni-a", FreeSince: noon.Add(-59 * time.Minute)}
)

// calling is one of which the claim says that a call moves it, and with that and a third node.
func with(s Status, change func(*Status)) Status {
	change(&s)
	return s
}

var calling = with(moving, func(s *Status) { s.ToENI = "eni-b" })

// People are told what the cloud has said.
func TestWhatTheCloudRefusesIsTold(t *testing.T) {
	c := fixed(Status{Phase: Contested, PodUID: "2"})
	facts := Facts{Pod: podOn("b", "2"), At: nowhere, Refused: noon}
	for why, want := range map[string]string{"": "an unmanaged ENI has", "not in the subnet of the ENI": "does not give 10.0.0.7 to b: not in the subnet of the ENI"} {
		facts.Refusal = why
		if step := Next(c, facts, noon); step.Wait.Cause != Conflict || !strings.Contains(step.Wait.Message, want) {
			t.Errorf("%q is told as %+v", why, step.Wait)
		}
	}
}

func TestWhatBecomesOfAClaim(t *testing.T) {
	ended := podOn("a", "1")
	ended.Ended = true
	another := podOn("a", "1")
	another.Topology = "u"
	for _, tt := range []struct {
		name string
		was  Claim
		is   Facts
		want Status
	}{
		{"a new one: its pod's node gets it", fixed(Status{}), Facts{Pod: podOn("a", "1"), At: nowhere}, Status{Phase: OnItsWay, PodUID: "1", To: "a"}},
		{"the node has it", fixed(Status{Phase: OnItsWay, PodUID: "1", To: "a"}), Facts{Pod: podOn("a", "1"), At: on("a")}, onA},
		{"the pod has ended", fixed(onA), Facts{Pod: noPod, At: on("a")}, Status{Phase: Free, Node: "a", ENI: "eni-a", FreeSince: noon}},
		{"it has ended though it is still there", fixed(onA), Facts{Pod: ended, At: on("a")}, Status{Phase: Free, Node: "a", ENI: "eni-a", FreeSince: noon}},
		{"one of the name is another topology's", fixed(onA), Facts{Pod: another, At: on("a")}, Status{Phase: Free, Node: "a", ENI: "eni-a", FreeSince: noon}},
		{"the time is not written again", fixed(free), Facts{Pod: noPod, At: on("a")}, free},
		{"the next pod has no node yet", fixed(free), Facts{Pod: podOn("", "2"), At: on("a")}, Status{Phase: Free, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"it comes back to the node", fixed(free), Facts{Pod: podOn("a", "2"), At: on("a")}, Status{Phase: Bound, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"it was made again there within a moment", fixed(onA), Facts{Pod: podOn("a", "2"), At: on("a")}, Status{Phase: Bound, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"it comes to another node", fixed(free), Facts{Pod: podOn("b", "2"), At: on("a")}, moving},
		{"it went to another node within a moment", fixed(onA), Facts{Pod: podOn("b", "2"), At: on("a")}, moving},
		{"the other node has it", fixed(moving), Facts{Pod: podOn("b", "2"), At: on("b")}, Status{Phase: Bound, PodUID: "2", Node: "b", ENI: "eni-b", Moves: 1}},
		{"the move is for nothing", fixed(moving), Facts{Pod: noPod, At: on("a")}, Status{Phase: Free, Node: "a", ENI: "eni-a", FreeSince: noon}},
		{"the pod comes to a third node", fixed(moving), Facts{Pod: podOn("c", "3"), At: on("a")}, Status{Phase: OnItsWay, PodUID: "3", Node: "a", ENI: "eni-a", To: "c"}},
		{"the first node has ended with it, and the pod is back there", fixed(moving), Facts{Pod: podOn("a", "3"), At: Attachment{Known: true, Node: "a", ENI: "eni-a", Released: true}},
			Status{Phase: OnItsWay, PodUID: "3", Node: "a", ENI: "eni-a", To: "a"}},
		{"the cloud has taken it from its pod", fixed(onA), Facts{Pod: podOn("a", "1"), At: nowhere}, Status{Phase: OnItsWay, PodUID: "1", Node: "a", ENI: "eni-a", To: "a"}},
		{"a new leader has described nothing", fixed(onA), Facts{Pod: podOn("a", "1")}, onA},
		{"and has listed no pods", fixed(onA), Facts{At: on("a"), StatefulSet: Absent}, onA},
		{"others have it", fixed(moving), Facts{Pod: podOn("b", "2"), At: nowhere, Refused: noon.Add(-299 * time.Second)}, Status{Phase: Contested, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"five minutes later it is tried again", fixed(Status{Phase: Contested, PodUID: "2"}), Facts{Pod: podOn("b", "2"), At: nowhere, Refused: noon.Add(-5 * time.Minute)},
			Status{Phase: OnItsWay, PodUID: "2", To: "b"}},
		{"it is ours, whatever the cloud had said", fixed(moving), Facts{Pod: podOn("b", "2"), At: on("a"), Refused: noon}, moving},

		{"scaled to none: the StatefulSet is there", fixed(free), Facts{Pod: noPod, At: on("a"), StatefulSet: Present}, free},
		{"one list lacks the StatefulSet", fixed(free), Facts{Pod: noPod, At: on("a")}, free},
		{"it is gone", fixed(free), Facts{Pod: noPod, At: on("a"), StatefulSet: Absent}, Status{Phase: Releasing, Node: "a", ENI: "eni-a", FreeSince: free.FreeSince}},
		{"it is gone, and its pod was spared", fixed(onA), Facts{Pod: podOn("a", "1"), At: on("a"), StatefulSet: Absent}, onA},
		{"a minute before the end", sticky(free), Facts{Pod: noPod, At: on("a")}, free},
		{"the pod comes in time, and has no node at the end", sticky(free), Facts{Pod: podOn("", "2"), At: on("a")}, Status{Phase: Free, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"the end", sticky(Status{Phase: Free, FreeSince: noon.Add(-time.Hour)}), Facts{Pod: noPod, At: nowhere}, Status{Phase: Releasing, FreeSince: noon.Add(-time.Hour)}},
		{"too late", fixed(Status{Phase: Releasing}), Facts{Pod: podOn("b", "2"), At: on("a")}, Status{Phase: Releasing}},

		{"people end it while its pod runs", fixed(onA), Facts{Deleted: true, Pod: podOn("a", "1"), At: on("a")}, Status{Phase: Releasing, PodUID: "1", Node: "a", ENI: "eni-a"}},
		{"they end it while it moves: the pod gets another one", fixed(moving), Facts{Deleted: true, Pod: podOn("b", "2"), At: on("a")}, Status{Phase: Releasing, Node: "a", ENI: "eni-a"}},
		{"and the pod: the next one there gets another one", fixed(onA), Facts{Deleted: true, Pod: podOn("a", "2"), At: on("a")}, Status{Phase: Releasing, Node: "a", ENI: "eni-a"}},
		{"whatever a new leader has described", fixed(onA), Facts{Deleted: true, Pod: podOn("a", "2")}, Status{Phase: Releasing, Node: "a", ENI: "eni-a"}},
		{"a pod comes when it ends", fixed(Status{Phase: Releasing}), Facts{Deleted: true, Pod: podOn("a", "2"), At: on("a")}, Status{Phase: Releasing}},
		{"a pod that has taken it on its own keeps it", fixed(Status{Phase: Releasing}), Facts{Deleted: true, Pod: showing(podOn("a", "2")), At: on("a")}, Status{Phase: Releasing, PodUID: "2"}},
		{"so does one that did so though the claim was another one's", fixed(onA), Facts{Deleted: true, Pod: showing(podOn("a", "2")), At: on("a")}, Status{Phase: Releasing, PodUID: "2", Node: "a", ENI: "eni-a"}},
		{"not where it is no more", fixed(onA), Facts{Deleted: true, Pod: showing(podOn("b", "2")), At: on("a")}, Status{Phase: Releasing, Node: "a", ENI: "eni-a"}},
		{"one on a node that has ended with it has not", fixed(Status{Phase: Releasing, PodUID: "2"}),
			Facts{Deleted: true, Pod: podOn("a", "2"), At: Attachment{Known: true, Node: "a", ENI: "eni-a", Released: true}}, Status{Phase: Releasing}},
		{"until it ends", fixed(Status{Phase: Releasing, PodUID: "2"}), Facts{Deleted: true, Pod: noPod, At: on("a")}, Status{Phase: Releasing}},
		{"a pod without a node has nothing", fixed(Status{PodUID: "2"}), Facts{Deleted: true, Pod: podOn("", "2")}, Status{Phase: Releasing}},
	} {
		if got := Next(tt.was, tt.is, noon); got.Claim.Status != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got.Claim.Status, tt.want)
		} else if got.Claim != tt.was && (got.Action != Nothing || got.Wait.Cause != None) {
			t.Errorf("%s: %+v before its status is written", tt.name, got)
		}
	}
}

func TestWhatIsDoneForAClaim(t *testing.T) {
	asked := func(ago time.Duration) Attachment {
		at := on("a")
		at.Asked = noon.Add(-ago)
		return at
	}
	released, gone := on("a"), on("a")
	released.Accepted, released.Released, gone.NodeGone = true, true, true
	otherENI := released
	otherENI.ENI = "eni-x"
	failed, silent := podOn("a", "2"), asked(time.Hour)
	failed.Ended, silent.NodeGone, silent.Accepted = true, true, true
	accepted := asked(time.Hour)
	accepted.Accepted = true
	untold := "the agent of a has yet to say that pod db/db-0 there does not have 10.0.0.7"
	b, ending := podOn("b", "2"), Status{Phase: Releasing, Node: "a", ENI: "eni-a"}
	for _, tt := range []struct {
		name    string
		claim   Claim
		is      Facts
		want    Action
		cause   Cause
		message string
	}{
		{"it is where its pod is", fixed(onA), Facts{Pod: podOn("a", "1"), At: on("a")}, Nothing, None, ""},
		{"nobody needs it", fixed(free), Facts{Pod: noPod, At: on("a")}, Nothing, None, ""},
		{"pods are not listed", fixed(moving), Facts{At: gone}, Nothing, InUse, "whether pod db/db-0 is there is not known yet"},
		{"a call is open", fixed(moving), Facts{Pod: b}, Nothing, Moving, "the cloud has yet to say which ENI has 10.0.0.7"},
		{"the node is to end with it", fixed(moving), Facts{Pod: b, At: on("a"), Target: "eni-b"}, Withdraw, Moving, "moving 10.0.0.7 from a"},
		{"it has some seconds", fixed(moving), Facts{Pod: b, At: asked(9 * time.Second)}, Nothing, Moving, "moving 10.0.0.7 from a"},
		{"and no more", fixed(moving), Facts{Pod: b, At: asked(10 * time.Second)}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"it has ended with it", fixed(moving), Facts{Pod: b, At: released}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"there is nobody to ask", fixed(moving), Facts{Pod: b, At: gone}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"in one call", fixed(calling), Facts{Pod: b, At: released, OneCall: true, Target: "eni-b"}, Reassign, Moving, "moving 10.0.0.7 from a"},
		{"not before the node has ended with it", fixed(moving), Facts{Pod: b, At: on("a"), OneCall: true, Target: "eni-b"}, Withdraw, Moving, "moving 10.0.0.7 from a"},
		{"not to nowhere", fixed(moving), Facts{Pod: b, At: released, OneCall: true}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"not from an ENI that the claim does not know", fixed(moving), Facts{Pod: b, At: otherENI, OneCall: true, Target: "eni-b"}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"it is free", fixed(moving), Facts{Pod: b, At: nowhere, Target: "eni-b"}, Assign, None, ""},
		{"and nothing can carry it", fixed(moving), Facts{Pod: b, At: nowhere}, Nothing, NoSlot, "no ENI of b can carry 10.0.0.7"},
		{"others have it", fixed(Status{Phase: Contested, PodUID: "2"}), Facts{Pod: b, At: nowhere, Refused: noon}, Nothing, Conflict, "an unmanaged ENI has 10.0.0.7: free it there, or delete the claim"},

		{"it ends", fixed(ending), Facts{Pod: noPod, At: on("a")}, Delete, None, ""},
		{"the node is to end with it first", fixed(ending), Facts{Deleted: true, Pod: noPod, At: on("a")}, Withdraw, Moving, "moving 10.0.0.7 from a"},
		{"it goes back", fixed(ending), Facts{Deleted: true, Pod: noPod, At: released, OneCall: true, Target: "eni-b"}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"the next pod is there: its node is to end with it", fixed(ending), Facts{Deleted: true, Pod: podOn("a", "2"), At: on("a")}, Withdraw, Moving, "moving 10.0.0.7 from a"},
		{"that one may have it until the agent says that it does not", fixed(ending), Facts{Deleted: true, Pod: podOn("a", "2"), At: accepted}, Nothing, InUse, untold},
		{"it is told again, though it was told once", fixed(ending), Facts{Deleted: true, Pod: podOn("a", "2"), At: asked(time.Hour)}, Withdraw, Moving, "moving 10.0.0.7 from a"},
		{"whatever became of the node", fixed(ending), Facts{Deleted: true, Pod: podOn("a", "2"), At: silent}, Nothing, InUse, untold},
		{"it has said so", fixed(ending), Facts{Deleted: true, Pod: podOn("a", "2"), At: released}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"that one has ended", fixed(ending), Facts{Deleted: true, Pod: failed, At: asked(time.Hour)}, Unassign, Moving, "moving 10.0.0.7 from a"},
		{"that one is of another topology, and may have it too", fixed(ending), Facts{Deleted: true, Pod: PodFacts{Presence: Present, UID: "2", Node: "a", Topology: "u"}, At: accepted}, Nothing, InUse, untold},
		{"it is gone", fixed(ending), Facts{Deleted: true, Pod: noPod, At: nowhere}, Forget, None, ""},
		{"nobody knows", fixed(ending), Facts{Deleted: true, Pod: noPod}, Nothing, Moving, "the cloud has yet to say which ENI has 10.0.0.7"},
		{"a pod has it", fixed(Status{Phase: Releasing, PodUID: "1"}), Facts{Deleted: true, Pod: podOn("a", "1"), At: gone}, Nothing, InUse, "pod db/db-0 has 10.0.0.7 until it ends"},
	} {
		got := Next(tt.claim, tt.is, noon)
		if got.Action != tt.want || got.Wait.Cause != tt.cause || got.Wait.Message != tt.message || got.Claim != tt.claim {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if w := Next(fixed(moving), Facts{Pod: b, At: asked(9 * time.Second)}, noon).Wait; !w.Until.Equal(noon.Add(time.Second)) {
		t.Errorf("it is worth another try at %s", w.Until)
	}
}
