package cni

import (
	"errors"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/gofrs/flock"
)

// keepNode takes the lock that an agent has for as long as it keeps the node.
func (l *lab) keepNode() {
	l.t.Helper()
	lock := flock.New(l.Cache.AgentLock(), flock.SetPermissions(0o600))
	if got, err := lock.TryLock(); !got || err != nil {
		l.t.Fatalf("%t, %v", got, err)
	}
	l.t.Cleanup(func() { _ = lock.Unlock() })
}

// What an agent said that has ended is not told as if it said so now.
func TestAnAddWithoutAddressSaysThatNoAgentRuns(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	l.exhaust()
	if err := l.Cache.SetWhy("subnet-1 is full"); err != nil {
		t.Fatal(err)
	}
	ns := nettest.NewNetns(t, "late")
	for _, conf := range []string{plain, strings.Replace(patient, "1m", "1ms", 1)} {
		_, err := l.add("late", ns.Path, conf)
		if err == nil || Error(err).Code != 11 || !strings.Contains(err.Error(), "no agent runs on this node: start it (its log says why it ended: `kubectl ") ||
			!strings.HasSuffix(err.Error(), "; it last said: subnet-1 is full") || strings.Contains(err.Error(), "the agent: ") {
			t.Errorf("%v", err)
		}
		if details := Error(err).Details; !strings.Contains(details, "enipoolctl pool show") || !strings.Contains(details, "enipoolctl pool load") {
			t.Errorf("details without an agent: %s", details)
		}
	}
	l.keepNode() // beside an agent an inventory is no way out
	_, err := l.add("late", ns.Path, plain)
	if details := Error(err).Details; !strings.Contains(details, "enipoolctl pool show") || strings.Contains(details, "enipoolctl pool load") {
		t.Errorf("details beside an agent: %s", details)
	}
}

// With all that the node can hold in use an agent is no remedy for the pod: that is said first.
func TestAFullNodeIsNotHelpedByAnAgent(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	one := func(used int) error { return &ipam.Exhausted{Tallies: []ipam.Tally{{Count: ipam.Count{Used: used}}}} }
	if err := l.Cache.SetWhy(nodecache.Sizing(12, 12) + ", cause: x"); err != nil {
		t.Fatal(err)
	}
	const full = "all 12 of at most 12 addresses are used, and an agent can't add any: move pods to other nodes; no agent runs on this node"
	for used, want := range map[int]bool{12: true, 11: false} { // one more cools down
		if got := l.tellAgentAway(one(used)).Error(); strings.Contains(got, full) != want {
			t.Errorf("%d used: %s", used, got)
		}
	}
	if err := l.Cache.SetWhy("x"); err != nil {
		t.Fatal(err)
	}
	if got := l.tellAgentAway(one(12)).Error(); strings.Contains(got, "can't add any") {
		t.Errorf("not told how many: %s", got)
	}
}

func TestOnlyWhatAnAgentCuresNamesIt(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	for err, want := range map[error]bool{&ipam.Exhausted{}: true, nodecache.ErrBoot: true, nodecache.ErrDamaged: true,
		errNoSource: true, nodecache.ErrMissing: false, errors.New("x"): false} {
		if got := l.tellAgentAway(err); (got.Error() != err.Error()) != want || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	l.keepNode()
	if got := l.tellAgentAway(nodecache.ErrBoot); got != nodecache.ErrBoot {
		t.Errorf("with an agent: %v", got)
	}
}

// Host ports need what an agent puts into the packet filter: the pod gets none, and who reads the error learns that none runs.
func TestAnAddWithHostPortsSaysThatNoAgentRuns(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "ports")
	_, err := l.add("ports", ns.Path, strings.Replace(plain, "{", `{"runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}, `, 1))
	if err == nil || Error(err).Code != 11 || !strings.Contains(err.Error(), "the packet filter has no place for host ports") || !strings.Contains(err.Error(), "no agent runs on this node: start it") {
		t.Errorf("%v", err)
	}
}
