package health

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestAMessageHasTheNumbersTheCauseAndTheRemedy(t *testing.T) {
	cloud, noWords := full(1), full(2)
	cloud.Most = -1
	cloud.Cause = Cause{Reason: CloudForbidden, What: "AssignAddresses eni-1:\n forbidden: \xff" + strings.Repeat("é", 200)}
	noWords.Cause = Cause{Reason: ENILimitReached, What: ""}
	for _, tt := range []struct {
		name string
		o    Observation
		want string
	}{
		{"a full subnet", full(3), "3 pods have no address: 16 there, 16 used, 0 free, 0 cooling, demand 19, target 20, at most 57; " +
			"no addresses left in subnet-a; name another subnet of the node's zone in cloud.subnets or cloud.subnetTags and restart the agent, or delete what else uses addresses there"},
		{"all pods are served", full(0), "the next pod may get no address: 16 there, 16 used, 0 free, 0 cooling, demand 16, target 17, at most 57; " +
			"no addresses left in subnet-a; name another subnet of the node's zone in cloud.subnets or cloud.subnetTags and restart the agent, or delete what else uses addresses there"},
		{"words of others", cloud, "1 pod has no address: 16 there, 16 used, 0 free, 0 cooling, demand 17, target 18; " +
			"AssignAddresses eni-1: forbidden: ?" + strings.Repeat("é", 82) + "...; `enipoolctl cloud check` on the node tells credentials, permissions and keys of agent.yaml (cloud.subnets, cloud.securityGroups) apart"},
		{"no cache", Observation{Cause: Cause{Reason: CacheUnusable, What: "node cache is damaged"}},
			"pods can get no address: node cache is damaged; the agent tries again and rebuilds a missing or damaged cache from the cloud and the kernel; if this stays put right what is named here (such as a full or read-only file system) or in the agent's log"},
		{"no words", noWords, "2 pods have no address: 16 there, 16 used, 0 free, 0 cooling, demand 18, target 19, at most 57; " +
			"the node may have no more ENIs; raise the account's quota, pool.maxAllocateENI or, on Baidu, cloud.maxENIs, detach ENIs that are not enipool's, or take a larger instance"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := message(tt.o.cause(), tt.o)
			if diff := cmp.Diff(tt.want, got); diff != "" || !utf8.ValidString(got) {
				t.Error(diff)
			}
		})
	}
}

// The words of a cause are kept while it is tried again.
func TestAMessageHasTheWordsOfTheCauseThatIsNotInTheWayForAMoment(t *testing.T) {
	s, _ := Judge(Default(), New(), time.Hour, full(3))
	trying := full(3)
	trying.Stuck, trying.Cause = false, Cause{}
	if _, r := Judge(Default(), s, time.Hour+30*time.Second, trying); r.Reason != SubnetExhausted || !strings.Contains(r.Message, "no addresses left in subnet-a") {
		t.Errorf("report %+v", r)
	}
}

// What another cause says is not said of this one.
func TestAMessageDoesNotMixTwoCauses(t *testing.T) {
	s, _ := Judge(Default(), New(), time.Hour, full(3))
	s, _ = Judge(Default(), s, time.Hour+30*time.Second, full(3))
	other := full(4)
	other.Cause = Cause{Reason: CloudThrottled, What: "RequestLimitExceeded"}
	s, _ = Judge(Default(), s, time.Hour+85*time.Second, other)
	if _, r := Judge(Default(), s, time.Hour+90*time.Second, other); r.Reason != SubnetExhausted || strings.Contains(r.Message, "RequestLimit") || !strings.HasPrefix(r.Message, "4 pods") {
		t.Errorf("report %+v", r)
	}
}

// Each new message is a write for the API server: a day of a fault is 30 of them.
func TestAMessageStandsForAsLongAsTheFaultHasLasted(t *testing.T) {
	for _, tt := range []struct {
		lasts   time.Duration
		changes int
		last    string
	}{
		{10 * time.Minute, 1 + 1 + 4, "511 pods"}, // healthy, faulty after 30s, then after 1, 2, 4 and 8 minutes
		{24 * time.Hour, 1 + 1 + 7 + 22, "83071 pods"},
	} {
		c, s := Default(), New()
		told, changes := "", 0
		for second := range int(tt.lasts / time.Second) {
			var r Report
			s, r = Judge(c, s, time.Hour+time.Duration(second)*time.Second, full(1+second))
			if r.Message != told {
				told, changes = r.Message, changes+1
			}
		}
		if changes != tt.changes {
			t.Errorf("%d messages in %s, want %d", changes, tt.lasts, tt.changes)
		}
		if !strings.HasPrefix(told, tt.last) {
			t.Errorf("the last one of %s: %s, want %s", tt.lasts, told, tt.last)
		}
	}
}

func TestEachReasonIsOneWordWithWordsAndARemedy(t *testing.T) {
	list := Reasons()
	if list[0] != AddressesAvailable || len(list) != len(faults)+1 {
		t.Errorf("reasons: %v", list)
	}
	for i, reason := range list {
		if slices.Index(list, reason) != i || strings.ContainsFunc(reason, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
			t.Errorf("%q is there twice, or no CamelCase", reason)
		}
	}
	for _, f := range faults {
		if f.words == "" || f.remedy == "" {
			t.Errorf("%s says nothing", f.reason)
		}
	}
}

// Nobody has seen pods get addresses where none is free, where the node has no ENI yet, or where a
// lack has not lasted long enough for a fault. What is told stands still all the same: each new
// message is a write for the API server.
func TestWithoutAFaultOnlyWhatIsKnownIsTold(t *testing.T) {
	c := Default()
	none := without(fine(), func(o *Observation) { o.Have, o.Used, o.Free, o.Demand = 0, 0, 0, 0 })
	cooling := without(full(2), func(o *Observation) { o.Cooling, o.Soon, o.Stuck, o.Cause = 3, 2, false, Cause{} })
	for name, o := range map[string]Observation{"all is well": fine(), "no ENI yet": none, "none is free": full(0), "some are cooling": cooling,
		"pods lack some": full(1), "no cache": {Most: -1}} {
		_, r := Judge(c, New(), time.Hour, o)
		if want := "no pod waits longer than 2m0s for an address"; r.Faulty || r.Reason != AddressesAvailable || r.Message != want {
			t.Errorf("%s: %+v, want %q", name, r, want)
		}
	}
}

// What helps on a node is known better there than for the reason in general: all who are told are told that, as long as it is the cause.
func TestTheRemedyOfANodeComesBeforeThatOfTheReason(t *testing.T) {
	c := Cause{Reason: AddressLimitReached, What: "12 at most", Remedy: "move pods"}
	if got := Explain(c); got != "12 at most; move pods" {
		t.Error(got)
	}
	o := Observation{Usable: true, Unserved: 1, Most: 12, Cause: c}
	s, _ := Judge(Default(), New(), time.Hour, o)
	s, r := Judge(Default(), s, time.Hour+30*time.Second, o)
	if !r.Faulty || !strings.HasSuffix(r.Message, "; 12 at most; move pods") {
		t.Errorf("told %+v", r)
	}
	o.Cause.Remedy = ""
	if _, r = Judge(Default(), s, time.Hour+90*time.Second, o); !strings.HasSuffix(r.Message, Remedy(AddressLimitReached)) {
		t.Errorf("and then %+v", r)
	}
}
