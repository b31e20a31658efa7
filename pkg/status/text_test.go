package status

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/health"
	"github.com/google/go-cmp/cmp"
)

func TestAStatusIsToldInLines(t *testing.T) {
	busy := example()
	busy.PendingADDs, busy.Ready, busy.Problem, busy.Exhausted = 35, false, "no addresses left in\x1b subnet subnet-a", "subnet-a,subnet-b"
	busy.InFlight = []string{"assign 32 ipv4 addresses to eni-a", "delete eni-b"}
	busy.Backoff = []string{"releases for 20s: throttled", "requests for addresses in subnet-a for 12s: full"}
	busy.Causes = []Cause{{Kind: "subnet-full", Object: "subnet-a", Next: noon.Add(16 * time.Second), What: busy.Problem}, {Kind: "throttled", What: "throttled"}}
	busy.TargetCauses = []string{"every ENI is full, and no subnet has room for one more"}
	busy.Addresses.Lost, busy.Addresses.Held, busy.Addresses.Unlinked, busy.StaleAllocations = 1, 11, 8, 2
	busy.Unused = []string{"eni-a, an ENI that gets no addresses for pods, has 2 that no pod uses"}
	busy.Shared = []string{"10.0.1.4 of default/web is claimed by others too: rule 1536: from 10.0.1.4 lookup 2"}
	busy.LastError, busy.LastErrorTime = "AssignAddresses eni-a: throttled", noon.Add(-90*time.Second)
	exhausted := example()
	exhausted.Watched, exhausted.Synced, exhausted.Pods, exhausted.PendingADDs = true, true, 36, 2
	exhausted.Health = health.Report{Faulty: true, Reason: health.SubnetExhausted, Message: "2 pods have no address: ...", Capacity: 34}
	exhausted.FaultSince = noon.Add(-2 * time.Minute)
	underWay := example()
	underWay.InFlight = []string{"assign 32 ipv4 addresses to eni-a for 2s"}
	again := example()
	again.Health, again.Prefixes = health.Report{Reason: health.AddressesAvailable, Capacity: 16}, "3 of 16 addresses each; 2 in use, whose 17 free addresses stay until all of a prefix are free"
	unsynced := example()
	unsynced.Watched, unsynced.Health = true, health.Report{Reason: health.AddressesAvailable, Capacity: 109}
	synced := example()
	synced.Watched, synced.Synced, synced.Pods, synced.Health = true, true, 35, health.Report{Capacity: -1}
	fast, slow := example(), example()
	fast.FastPath = &FastPath{Out: 12, In: 34, Local: 56}
	slow.FastPath = &FastPath{Off: []string{"chain FORWARD of ip filter drops what no rule of it accepts", "IPVS serves addresses"}}
	refused := example()
	refused.Refused = &Refused{Error: "/etc/enipool/agent.yaml:\n  coolDown: \"9\": must be a duration", Since: noon.Add(-5 * time.Minute)}
	kept, unkept := refused, refused
	kept.Refused = &Refused{Error: "colour: unknown key", Since: refused.Refused.Since, Start: true, Kept: "/run/enipool/agent.json.good"}
	unkept.Refused = &Refused{Error: "colour: unknown key", Since: refused.Refused.Since, NotKept: "no space left on device"}
	fought := example()
	for _, change := range []string{"add rule 512: from all lookup 100", "b", "c", "d", "e"} {
		fought.Undone = append(fought.Undone, Undone{Change: change, Times: 148, First: noon.Add(-160 * time.Second), Last: noon, Who: "a second agent", ShownFor: "2m0s"})
	}
	fought.Problem = fought.Undone[0].String()
	unasked := example()
	unasked.Most, unasked.ENILimit, unasked.Need, unasked.Reason = 0, 0, 0, ""
	bare := Status{Written: noon, Mode: "burstable", Strategy: "equation"}
	for _, tt := range []struct {
		name string
		s    Status
		at   time.Duration
		want string
	}{
		{"all is well", example(), 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"the fast path", fast, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
fast path:	on (packets so far: 12 out, 34 in, 56 from pod to pod)
`},
		{"a configuration that is refused", refused, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
refused:	the changed configuration, 5m4s ago: the one before stays in force until the agent is started again, which would fail: /etc/enipool/agent.yaml: coolDown: "9": must be a duration
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"one that is kept over a start", kept, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
refused:	the configuration, 5m4s ago, when the agent was started: the one that was in force before is so again, and the agent starts with it too (/run/enipool/agent.json.good): colour: unknown key
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"one that can not be kept", unkept, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
refused:	the changed configuration, 5m4s ago: the one before stays in force until the agent is started again, which would fail (no space left on device): colour: unknown key
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"no fast path", slow, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
fast path:	off: chain FORWARD of ip filter drops what no rule of it accepts; IPVS serves addresses (packets so far: 0 out, 0 in, 0 from pod to pod)
`},
		{"everything is wrong", busy, 4 * time.Second, `
agent:	not ready, mode batch by equation, heard 4s ago
cause:	no addresses left in  subnet subnet-a (and 1 more: -o json has all)
next try:	in 12s
demand:	36 (35 wait), need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
in flight:	assign 32 ipv4 addresses to eni-a
in flight:	delete eni-b
unused:	eni-a, an ENI that gets no addresses for pods, has 2 that no pod uses
lost:	1 address that pods use and the cloud took away
held:	3 addresses that others have: see below; pool check says what to do
no link:	8 addresses on ENIs that have no link on this node: no pod gets them until it is back
claimed:	10.0.1.4 of default/web is claimed by others too: rule 1536: from 10.0.1.4 lookup 2
stale:	2 addresses whose sandboxes are gone, about to be freed
`},
		{"the last word of an agent that is no more", underWay, time.Hour, `
agent:	not running, or hangs? last heard of 1h0m0s ago (` + noon.Format(time.RFC3339) + `)
was:	ready, mode batch by equation
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
was in flight:	assign 32 ipv4 addresses to eni-a for 2s, when it was last heard of (1h0m0s ago)
`},
		{"a fault", exhausted, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
cause:	SubnetExhausted for 2m4s: 2 pods have no address: ...
demand:	36 (36 pods, 2 wait), need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
capacity:	34 pods, as long as there are no more addresses
`},
		{"more can be had again, and prefixes", again, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
capacity:	16 pods, until more addresses could be had for a while
prefixes:	3 of 16 addresses each; 2 in use, whose 17 free addresses stay until all of a prefix are free
`},
		{"repairs that don't last", fought, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
cause:	something on this node undoes what the agent repairs, 148 times in 2m40s so far: add rule 512: from all lookup 100; who it may be: a second agent; told until it has stayed for 2m0s
demand:	36, need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
undone:	148 times in 2m40s so far: b
undone:	148 times in 2m40s so far: c
undone:	and 2 more
`},
		{"the cluster has not answered", unsynced, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, need 48, target 48: up
pods:	not known, the API server has not told them yet: no address goes back
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"the cluster has answered", synced, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36 (35 pods), need 48, target 48: up
limits:	109 slots, 1 of 4 ENIs, 110 pods (default)
`},
		{"nothing is known yet", bare, 0, `
agent:	not ready, mode burstable, heard now
demand:	0
limits:	not known before the cloud has answered; 0 pods
`},
		{"the agent was started again, and nothing needs the cloud yet", unasked, 4 * time.Second, `
agent:	ready, mode batch by equation, heard 4s ago
demand:	36, target 48 by the agent before
limits:	not known yet: the cloud was not asked since the agent was started, nothing needs it; 1 ENI, 110 pods (default)
`},
		{"it can be late for a while", bare, 3 * time.Minute, `
agent:	not ready, mode burstable, heard 3m0s ago
demand:	0
limits:	not known before the cloud has answered; 0 pods
`},
		{"it is too late", bare, 62*time.Minute + 3*time.Second, `
agent:	not running, or hangs? last heard of 1h2m3s ago (2026-03-01T12:00:00Z)
was:	not ready, mode burstable
demand:	0
limits:	not known before the cloud has answered; 0 pods
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := "\n" + strings.Join(tt.s.Lines(noon.Add(tt.at), Process{}), "\n") + "\n"
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAClockThatWasSetBackTellsNoNegativeTimes(t *testing.T) {
	s := example()
	s.Health, s.FaultSince = health.Report{Faulty: true, Reason: health.SubnetExhausted, Message: "2 pods have no address"}, noon
	if cause := s.Cause(noon.Add(-time.Hour)); cause != "SubnetExhausted for 0s: 2 pods have no address" {
		t.Error(cause)
	}
}

// Each agent tells in its way, and people get one line of what is wrong and one of when it is
// tried again. During a rollout enipoolctl reads what agents of the previous release wrote.
func TestOneLineTellsTheCauseAndOneTheNextTry(t *testing.T) {
	faulty := health.Report{Faulty: true, Reason: health.CloudForbidden, Message: "3 pods have no address: ..."}
	for _, tt := range []struct {
		name        string
		s           Status
		cause, next string
	}{
		{"nothing is wrong", Status{}, "", ""},
		{"a cause that is tried again", Status{Problem: "cloud: forbidden", Causes: []Cause{{Kind: "forbidden", What: "cloud: forbidden", Next: noon.Add(71 * time.Second)}}, Backoff: []string{"x for 1s"}},
			"cloud: forbidden", "in 1m11s"},
		{"one that is tried now", Status{Problem: "p", Causes: []Cause{{What: "p", Next: noon}}}, "p", ""},
		{"several", Status{Problem: "p", Causes: make([]Cause, 3)}, "p (and 2 more: -o json has all)", ""},
		{"what the cluster is told of it", Status{Problem: "p", Causes: []Cause{{What: "p", Reason: health.CloudForbidden}}, Health: faulty, FaultTimes: FaultTimes{FaultSince: noon.Add(-time.Minute)}}, "CloudForbidden for 1m0s: p", ""},
		{"no pod waits, and the pool can't grow", Status{TargetCauses: []string{"eni-a is busy", "b"}}, "eni-a is busy", ""},
		{"no pod waits, and it is known when that is tried again", Status{TargetCauses: []string{"p; move pods", "b"}, FaultTimes: FaultTimes{TargetNext: noon.Add(30 * time.Second)}}, "p; move pods", "in 30s"},
		{"something else is wrong meanwhile", Status{Problem: "p", TargetCauses: []string{"b"}, FaultTimes: FaultTimes{TargetNext: noon.Add(30 * time.Second)}}, "p", ""},
		{"a fault of the previous release", Status{Health: faulty, FaultTimes: FaultTimes{FaultSince: noon}}, "CloudForbidden for 0s: 3 pods have no address: ...", ""},
		{"a back-off of the previous release", Status{Problem: "cloud: throttled", Backoff: []string{"releases for 1s: busy", "cloud for 12s: throttled", "y"}, Written: noon.Add(-5 * time.Second)}, "cloud: throttled", "in 7s"},
		{"the first of several tries of what is told", Status{Problem: "EPERM", Backoff: []string{"the kernel for 9s: EPERM", "ticks for 3s: EPERM"}, Written: noon}, "EPERM", "in 3s"},
		{"a try that is due", Status{Problem: "EPERM", Backoff: []string{"the kernel for 9s: EPERM"}, Written: noon.Add(-time.Minute)}, "EPERM", ""},
		{"a back-off of something else", Status{Problem: "no addresses left in subnet-a", Backoff: []string{"releases for 20s: throttled", "for 1s: a", "x"}}, "no addresses left in subnet-a", ""},
		{"a back-off while nothing is wrong", Status{Backoff: []string{"releases for 20s: throttled"}, Written: noon}, "", ""},
		{"a second cause that is tried earlier", Status{Problem: "p", Causes: []Cause{{What: "p"}, {What: "q", Next: noon.Add(time.Second)}}}, "p (and 1 more: -o json has all)", ""},
		{"a condition that lags behind the cause", Status{Problem: "p", Causes: []Cause{{What: "p", Reason: health.SubnetExhausted}}, Health: faulty, FaultTimes: FaultTimes{FaultSince: noon.Add(-time.Minute)}},
			"p (reported as CloudForbidden for 1m0s)", ""},
		{"a fault that is over", Status{Health: faulty, FaultTimes: FaultTimes{FaultSince: noon.Add(-time.Minute), FaultOver: noon.Add(-20 * time.Second)}},
			"over for 20s: CloudForbidden, which lasted 40s; it is reported until all has been well for a while", ""},
		{"a fault that is over, and something else on the node", Status{Problem: "rule 512 is undone", Health: faulty, FaultTimes: FaultTimes{FaultSince: noon.Add(-time.Minute), FaultOver: noon.Add(-20 * time.Second)}},
			"rule 512 is undone (over for 20s: CloudForbidden, which lasted 40s; it is reported until all has been well for a while)", ""},
		{"a fault of which no cause is known, and something else on the node", Status{Problem: "rule 512 is undone", Health: faulty, FaultTimes: FaultTimes{FaultSince: noon}},
			"rule 512 is undone (reported as CloudForbidden for 0s)", ""},
	} {
		if cause, next := tt.s.Cause(noon), tt.s.NextTry(noon); cause != tt.cause || next != tt.next {
			t.Errorf("%s: cause %q, next try %q, want %q and %q", tt.name, cause, next, tt.cause, tt.next)
		}
	}
}

func TestWhatTheOperatorAsksForIsTold(t *testing.T) {
	s := example()
	s.AskedBack = 10
	if text := strings.Join(s.Lines(noon, Process{}), "\n"); !strings.Contains(text, "operator:\tasks this node to do without 10 slots") {
		t.Error(text)
	}
}
