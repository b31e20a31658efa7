package order

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
)

// heardNode is a node with three addresses, and what the next leader knows of it.
func heardNode() (View, *Term) {
	made, _ := machineENI("eni-a")
	made.Addresses = hosts(10, 11, 12)
	second := ENI{ID: "eni-b", Index: 1, State: Attached, Addresses: hosts(20)}
	v := View{Spec: Spec{Mode: Operator, SeenEpoch: 1, Boot: "boot-0"}, Status: Status{Mode: Operator, Epoch: 1, Revision: 5, ENIs: []ENI{made, second}}}
	return v, NewTerm(lease, 2, 0)
}

// What a spec and a status say that a new leader finds may be of a backup. It accepts and takes nothing before the agent has written its number.
func TestALeaderTakesNothingBeforeTheAgentHasReadOfIt(t *testing.T) {
	v, term := heardNode()
	v.Spec.Release, v.Spec.ReleaseInterfaces = hosts(10, 20), []string{"eni-b"}
	v.Status.Releasing, v.Status.LeavingInterfaces = hosts(11), []string{"eni-b"}
	if _, is := term.Accept(v); is || !term.Awaits(v) {
		t.Fatal("accepted what a spec of before says")
	}
	v.Status, _ = term.Take(v)
	if len(term.Unassignable(v))+len(term.Deletable(v)) > 0 {
		t.Fatalf("%v and %v may be taken", term.Unassignable(v), term.Deletable(v))
	}
	// The agent serves 11 since, and lets 10 and what is on the second ENI go.
	v.Spec = Hear(v, v.Spec)
	if term.Awaits(v) || v.Spec.SeenEpoch != 2 {
		t.Errorf("the agent has said that it has read of leader %d", v.Spec.SeenEpoch)
	}
	if len(term.Unassignable(v)) > 0 {
		t.Error("what a status of before has accepted and the agent does not publish may be taken")
	}
	next, is := term.Accept(v)
	if v.Status = next; !is || !slices.Equal(next.Releasing, hosts(11, 10, 20)) {
		t.Errorf("%+v", next)
	}
	if may := term.Unassignable(v); !slices.Equal(may["eni-a"], hosts(10)) || !slices.Equal(term.Deletable(v), []string{"eni-b"}) {
		t.Errorf("%v and %v may be taken", may, term.Deletable(v))
	}
}

// Where the node state is not there or is damaged, nobody knows which of what a spec of before releases serves pods: nothing of it goes.
func TestWhatABackupReleasesStaysWhereNobodyKnowsWhatServesPods(t *testing.T) {
	v, _ := heardNode()
	v.Spec.Release, v.Spec.ReleaseInterfaces = hosts(10), []string{"eni-b"}
	for what, state := range map[string]*ipam.State{"no node state": nil, "a damaged one": {Damaged: []ipam.Damage{{Cause: "line 7"}}}} {
		if next := Seen(state, v, Head{Revision: 9}); len(next.Release)+len(next.ReleaseInterfaces) > 0 || next.SeenRevision != 9 {
			t.Errorf("%s: %+v", what, next)
		}
	}
}

// An ENI whose deletion a backup says was accepted serves pods since.
func TestAnENIThatServesAgainIsNotDeleted(t *testing.T) {
	v, term := heardNode()
	v.Status.LeavingInterfaces, v.Status.Epoch, v.Spec.SeenEpoch = []string{"eni-b"}, 2, 2
	if may := term.Deletable(v); len(may) > 0 {
		t.Errorf("%v may be deleted", may)
	}
	if v.Spec.Release = hosts(20); !slices.Equal(term.Deletable(v), []string{"eni-b"}) {
		t.Error("what the agent publishes all of stays")
	}
}

// An agent of a release that does not say whose status it has read is served as before.
func TestAnAgentThatDoesNotSayWhatItHasRead(t *testing.T) {
	v, term := heardNode()
	v.Spec.SeenEpoch, v.Spec.Release = 0, hosts(10)
	next, is := term.Accept(v)
	if !is || term.Awaits(v) {
		t.Fatal("nothing is accepted")
	}
	v.Status = next
	if may := term.Unassignable(v); !slices.Equal(may["eni-a"], hosts(10)) {
		t.Errorf("%v may be taken", may)
	}
}

// The number alone is worth no write where nothing goes back, and a new leader asks nobody for it then.
func TestANodeThatGivesNothingWritesNothingForANewLeader(t *testing.T) {
	v, term := heardNode()
	if v.Status.Epoch = 2; Hear(v, v.Spec).SeenEpoch != 1 || term.Awaits(v) {
		t.Error("the agent of a node that gives nothing says that it has read")
	}
}

// What is accepted, wherever that was agreed, the agent publishes unless it serves it.
func TestWhatIsAcceptedIsPublishedUnlessItServes(t *testing.T) {
	v, _ := heardNode()
	v.Status.Releasing = hosts(10, 11, 12)
	n := newMachine("", 1, x).nodes[0] // 10 is free in its cache
	if next := Publish(n.agent.state, v); !slices.Equal(next.Release, hosts(11, 12)) {
		t.Errorf("published %v", next.Release)
	}
	v.Spec.Release, v.Spec.ReleaseInterfaces = hosts(10), []string{"eni-a", "eni-b"}
	if next := Publish(n.agent.state, v); slices.Contains(next.Release, addr) || !slices.Equal(next.ReleaseInterfaces, []string{"eni-b"}) {
		t.Errorf("published %v of what serves, and %v", next.Release, next.ReleaseInterfaces)
	}
}

// An agent that is to call itself says that it has read once nothing of what is accepted is in service.
func TestAnAgentThatLeavesHearsOnceNothingServes(t *testing.T) {
	for name, test := range map[string]struct {
		releasing []netip.Prefix
		leaving   []string
		want      int64
	}{
		"nothing serves":    {hosts(11), []string{"eni-b"}, 1},
		"an address serves": {hosts(10, 11), nil, 7},
		"an ENI serves":     {nil, []string{"eni-a"}, 7},
	} {
		v, term := heardNode()
		v.Spec.SeenEpoch, v.Spec.Release, v.Status.Releasing, v.Status.LeavingInterfaces = 7, hosts(12), test.releasing, test.leaving
		v.Spec = HearLeaving(newMachine("", 1, x).nodes[0].agent.state, v)
		if v.Spec.Mode != Self || len(v.Spec.Release) > 0 || v.Spec.SeenEpoch != test.want {
			t.Errorf("%s: %+v", name, v.Spec)
		}
		term.Epoch = 1
		if may := term.Unassignable(v); test.want == 1 && !slices.Equal(may["eni-a"], hosts(11)) {
			t.Errorf("%s: %v may be taken", name, may)
		}
	}
}
