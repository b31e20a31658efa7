package simulate

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/agent"
	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/go-cmp/cmp"
)

// happening is something that happens to an agent at a time of the load.
type happening struct {
	at    time.Duration
	event agent.Event
}

// play sends what happens to the agent's channels, as the parts of its process do. The load begins later.
func (r *realNode) play(script []happening, later time.Duration) {
	for _, h := range script {
		time.Sleep(time.Until(r.begin.Add(later + h.at)))
		switch h.event.Kind {
		case agent.Woken:
			r.call()
		case agent.Occupied:
			r.occupied <- struct{}{}
		case agent.Disturbed:
			r.disturbed <- struct{}{}
		case agent.Reloaded:
			r.reload <- *h.event.Conf
		}
	}
}

// decisions are an agent's metrics that also log when it ticks, compares and hears of a call.
type decisions struct {
	agent.Events
	log *steps
}

func (d decisions) Tick(took time.Duration) {
	d.log.add("tick")
	d.Events.Tick(took)
}

func (d decisions) Compared(cause string) {
	d.log.add("compare: " + cause)
	d.Events.Compared(cause)
}

func (d decisions) Call(op, outcome string, took time.Duration) {
	d.log.add("call: " + op + " " + outcome)
	d.Events.Call(op, outcome, took)
}

// watched is a kernel that logs when it is asked what others hold of the pool's addresses.
type watched struct {
	agent.Kernel
	log *steps
}

func (w watched) Occupancy(ctx context.Context) (netconf.Occupancy, error) {
	w.log.add("look for others")
	return w.Kernel.Occupancy(ctx)
}

// logDecisions makes an agent that has not begun log them, and its signs of life.
func logDecisions(a *agent.Agent, log *steps) {
	a.Events, a.Kernel = decisions{a.Events, log}, watched{a.Kernel, log}
	a.Beat = func() { log.add("sign of life") }
}

// theScript has each event that a process hears by a channel: alone, in a burst of wakes, and while calls are
// under way.
func theScript(reloaded agentconf.Config) (list []happening) {
	const ms = time.Millisecond
	at := func(t time.Duration, e agent.Event) { list = append(list, happening{t, e}) }
	at(30*time.Second+3*ms, agent.Event{Kind: agent.Disturbed})
	at(40*time.Second+7*ms, agent.Event{Kind: agent.Woken})
	burst := time.Minute + 13*ms
	for _, d := range []time.Duration{0, 1, 3, 9, 12, 50, 90, 105, 111, 150, 250, 400, 850} {
		at(burst+d*ms, agent.Event{Kind: agent.Woken})
	}
	at(burst+163*ms, agent.Event{Kind: agent.Disturbed})
	at(burst+171*ms, agent.Event{Kind: agent.Occupied})
	at(90*time.Second+17*ms, agent.Event{Kind: agent.Occupied})
	at(2*time.Minute+300*ms, agent.Event{Kind: agent.Disturbed}) // while addresses are assigned
	at(2*time.Minute+310*ms, agent.Event{Kind: agent.Woken})
	at(3*time.Minute+19*ms, agent.Event{Kind: agent.Reloaded, Conf: &reloaded})
	at(3*time.Minute+200*ms, agent.Event{Kind: agent.Woken})
	slices.SortStableFunc(list, func(a, b happening) int { return int(a.at - b.at) })
	return list
}

// An agent's process, which hears of events by channels, and a simulation tick, compare, call and give signs of
// life at the same times.
func TestAProcessAndASimulationDecideTheSameAtTheSameTimes(t *testing.T) {
	s := Setting{Name: "batch", Config: agentconf.Default()}
	s.Config.Cloud.Concurrent = 1 // of calls that begin together nobody knows which is first
	s.Config.Settings.VPC = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	reloaded := s.Config
	reloaded.Pool.Scale.MinPool, reloaded.Resync = 40, 20*time.Second
	script := theScript(reloaded)
	var pods []Pod
	for k := range 20 {
		pods = append(pods, Pod{2*time.Minute + time.Duration(k*7+1)*time.Millisecond, 4*time.Minute + time.Duration(k*31+1)*time.Millisecond})
	}
	w, l := testWorld(), Load{Name: "test", Duration: 6*time.Minute + 5*time.Second, Nodes: [][]Pod{pods}}
	want, _ := runReal(t, w, l, s, script, logDecisions)

	log := &steps{}
	p, err := newPlay(w, l, s, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stopAgents()
	log.now = func() time.Duration { return p.clock.now }
	n := p.nodes[0]
	logDecisions(n.agent, log)
	for _, h := range script {
		p.clock.planAt(h.at, func() { n.told.Tell(h.event) })
	}
	for p.clock.runNext(l.Duration) {
	}
	if diff := cmp.Diff(want, log.lines); diff != "" {
		t.Errorf("the process (-) and the simulation (+) differ:\n%s", diff)
	}
	kinds := map[string]int{}
	for _, line := range want {
		what, _, _ := strings.Cut(line.what, ":")
		kinds[what]++
	}
	if kinds["tick"] < 50 || kinds["compare"] < 10 || kinds["call"] < 8 || kinds["sign of life"] != 96 || kinds["configuration reloaded"] != 1 {
		t.Errorf("the script is too dull: %v", kinds)
	}
}
