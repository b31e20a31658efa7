package cni

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
)

// pending is an ADD that waits.
type pending struct {
	id   string
	done <-chan error
}

// delegated is a configuration in which we are the ipam of a plugin over the link.
func delegated(master string) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"pods","type":"macvlan","master":%q,"ipam":{"type":"enipool","waitForAddress":"1m"}}`, master)
}

// wait starts an ADD and returns when it is in the queue and has told that it waits.
func (l *lab) wait(id, conf string) pending {
	l.t.Helper()
	r, err := l.request(id, nettest.NewNetns(l.t, id).Path, conf, false)
	if err != nil {
		l.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Add(context.Background(), r, discard) }()
	for !strings.Contains("\n"+l.pendingADDs(), "\n"+id+" ") {
		select {
		case err := <-done:
			l.t.Fatalf("%s did not wait: %v", id, err)
		case <-time.After(time.Millisecond):
		}
	}
	return pending{id: id, done: done}
}

func (l *lab) mustBeServed(list ...pending) {
	l.t.Helper()
	for _, p := range list {
		select {
		case err := <-p.done:
			if err != nil {
				l.t.Fatalf("%s: %v", p.id, err)
			}
		case <-time.After(10 * time.Second):
			l.t.Fatalf("%s is not served; the node state:\n%s", p.id, l.takenAddresses())
		}
	}
}

func (l *lab) mustStillWait(list ...pending) {
	l.t.Helper()
	for _, p := range list {
		select {
		case err := <-p.done:
			l.t.Fatalf("%s is served before its turn: %v; the node state:\n%s", p.id, err, l.takenAddresses())
		default:
		}
	}
}

// waitAs starts an ADD with each of the configurations, in turn.
func (l *lab) waitAs(confs ...string) (queue []pending) {
	l.t.Helper()
	for i, conf := range confs {
		queue = append(queue, l.wait(fmt.Sprint("late", i), conf))
	}
	return queue
}

// mustBeServedInTurn adds an address for each, which nobody else may get, and ends them.
func (l *lab) mustBeServedInTurn(queue []pending) {
	l.t.Helper()
	for i, p := range queue {
		l.mustStillWait(queue[i:]...)
		l.addAddress()
		l.mustBeServed(p)
		l.mustStillWait(queue[i+1:]...)
	}
	for _, p := range queue {
		l.mustDel(p.id, "", plain)
	}
}

func (l *lab) delAll(ids ...string) {
	l.t.Helper()
	for _, id := range ids {
		l.mustDel(id, "", plain)
	}
}

func TestAddsThatWaitAreServedInOrderOfArrival(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	l.mustBeServedInTurn(l.waitAs(slices.Repeat([]string{patient}, 6)...))
}

// One change that brings many addresses serves as many.
func TestSeveralAddressesServeSeveralThatWait(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	queue := l.waitAs(slices.Repeat([]string{patient}, 6)...)
	l.addAddresses(1, 5)
	l.mustBeServed(queue[:5]...)
	l.mustBeServedInTurn(queue[5:])
	for _, p := range queue[:5] {
		l.mustDel(p.id, "", plain)
	}
}

// stand plays an ADD that waits and does not look.
func (l *lab) stand(need string) *nodecache.Place {
	l.t.Helper()
	p, err := l.Cache.Enqueue(need, nodecache.SinceBoot()+time.Minute)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func TestANewAddDoesNotOvertakeThoseThatWait(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	for _, id := range []string{"a", "b"} {
		l.mustAdd(id, nettest.NewNetns(t, id).Path, plain)
	}
	first, second := l.stand(""), l.stand("")
	// Two are free, two wait.
	ns := nettest.NewNetns(t, "new")
	_, err := l.add("new", ns.Path, plain)
	if want := "; 2 pods waited before this one"; err == nil || !strings.Contains(err.Error(), want) || Error(err).Code != 11 {
		t.Errorf("%v, want …%s", err, want)
	}
	if _, err := l.add("new", ns.Path, strings.Replace(patient, "1m", "1ms", 1)); err == nil || Error(err).Code != 11 {
		t.Errorf("past its time: %v", err)
	}
	second.Leave()
	l.mustAdd("new", ns.Path, plain) // there is one for it too
	first.Leave()
	l.delAll("a", "b", "new")
}

func TestAnAddThatWaitsForOneENILetsOthersPass(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	bound := l.wait("bound", delegated("eth0")) // ENI 0 gets no more addresses
	any1, any2 := l.wait("any1", patient), l.wait("any2", delegated("other0"))
	l.addAddress() // on ENI 1
	l.mustBeServed(any1)
	l.mustStillWait(bound, any2)
	l.addAddress()
	l.mustBeServed(any2)
	l.mustStillWait(bound)
	l.addAddresses(0, 1)
	l.mustBeServed(bound)
	l.delAll("bound", "any1", "any2")
}

// A link that is nobody's may become that of an ENI while its ADD waits: from then on it
// needs an address of that one, and the others need not stand behind it.
func TestAnAddWhoseLinkBecomesAnENILetsOthersPass(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	bound := l.wait("bound", delegated("eth2"))
	any1 := l.wait("any1", patient)
	err := l.Cache.Replace(t.Context(), func(s *ipam.State, err error) (*ipam.State, error) {
		if err != nil {
			return nil, err
		}
		nic := s.ENIs[1]
		nic.ID, nic.Index, nic.Device = "eni-eth2", 2, "eth2"
		nic.V4.Primary = netip.MustParsePrefix("10.0.0.100/24")
		return s, s.AddENI(nic)
	})
	if err != nil {
		t.Fatal(err)
	}
	l.addAddress() // on ENI 1
	l.mustBeServed(any1)
	l.mustStillWait(bound)
	l.addAddresses(2, 1)
	l.mustBeServed(bound)
	l.delAll("bound", "any1")
}

// Both could use it, so it goes to the one that came first, whichever looks first.
func TestAddsOfDifferentNeedsAreServedInOrderOfArrivalToo(t *testing.T) {
	for _, needs := range [][]string{{"eth1", ""}, {"", "eth1"}} {
		t.Run(fmt.Sprintf("%q before %q", needs[0], needs[1]), func(t *testing.T) {
			l := newLab(t, ipam.Settings{})
			l.exhaust()
			confs := make([]string, 2)
			for i, need := range needs {
				confs[i] = patient
				if need != "" {
					confs[i] = delegated(need)
				}
			}
			l.mustBeServedInTurn(l.waitAs(slices.Repeat(confs, 2)...))
		})
	}
}

// One that is to be served and is killed just then changes nothing in the cache that
// would wake the one that left it the address.
func TestAnAddressLeftToOneThatDiesIsNotLost(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	dies := l.stand("eth1")
	late := l.wait("late", patient)
	l.addAddress()
	l.mustStillWait(late)
	dies.Leave()
	l.mustBeServed(late)
	l.delAll("late")
}

// A plugin of an earlier release waits without a place in the queue: it looks at each
// change. It may be served before others, and keeps nobody.
func TestAnOlderPluginThatWaitsKeepsNobody(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	old, err := l.Cache.Announce(eni.Owner{Key: eni.Key{Network: "pods", Container: "old", IfName: "eth0"}}, l.now+time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	late := l.wait("late", patient)
	// Which of two that came at the same time is told first does not matter.
	if got, want := slices.Sorted(strings.SplitSeq(l.pendingADDs(), "\n")), []string{"late default/late 2m40s", "old old 2m40s"}; !slices.Equal(got, want) {
		t.Errorf("the agent sees %q, want %q", got, want)
	}
	l.addAddress()
	l.mustBeServed(late)
	old.Done()
	l.delAll("late")
}

// What sandboxes hold that die while others wait is freed by the first of these.
func TestTheFirstThatWaitsFreesWhatHasDiedMeanwhile(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	r, err := l.request("late", nettest.NewNetns(t, "late").Path, patient, false)
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	l.kill("b")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s := &search{Plugin: l.Plugin, host: h, request: r, reclaimed: time.Now().Add(-reclaimTime), watch: l.watchCache}
	done := make(chan error, 1)
	go func() { done <- s.awaitAddress(ctx, &ipam.Exhausted{}) }()
	for ctx.Err() == nil && !strings.Contains(l.takenAddresses(), "cooling") {
		time.Sleep(time.Millisecond)
	}
	if want := "cooling"; !strings.Contains(l.takenAddresses(), want) {
		t.Errorf("it is not freed:\n%s", l.takenAddresses())
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("it is handed out though it cools")
	}
}

// One that need not wait leaves nothing behind; others tell how it ended.
func TestAnAddTellsHowItsWaitEnded(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	if list, err := l.Cache.TakeWaits(); list != nil || err != nil {
		t.Errorf("nobody waited, but %v, %v", list, err)
	}
	var log strings.Builder
	l.Log = slog.New(slog.NewTextHandler(&log, nil))
	late := l.wait("late", patient)
	l.addAddress()
	l.mustBeServed(late)
	ns := nettest.NewNetns(t, "none")
	for _, conf := range []string{plain, strings.Replace(patient, "1m", "30ms", 1)} {
		if _, err := l.add("none", ns.Path, conf); err == nil {
			t.Error("it got an address")
		}
	}
	list, err := l.Cache.TakeWaits()
	if err != nil || len(list) != 3 {
		t.Fatalf("%v, %v", list, err)
	}
	for i, want := range []nodecache.Outcome{nodecache.Served, nodecache.Exhausted, nodecache.Exhausted} {
		if list[i].Outcome != want || list[i].Took < 0 || list[i].Took > time.Minute {
			t.Errorf("number %d: %+v, want %s", i, list[i], want)
		}
	}
	if list[1].Took != 0 || list[2].Took < 30*time.Millisecond {
		t.Errorf("they waited %s and %s", list[1].Took, list[2].Took)
	}
	for _, want := range []string{"msg=add pod=default/late", " took=", `msg="waited for an address"`, "outcome=served", "outcome=exhausted"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, &log)
		}
	}
	l.delAll("late")
}
