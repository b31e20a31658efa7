package kube

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

func TestAWarningIsAnEventOfThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		n.Warn(eni.Pod{UID: "u-1", Namespace: "shop", Name: "web-0"}, "NoAddress", "no free address: 16 used")
		expectEvents(t, c, "Warning Pod shop/web-0(u-1) NoAddress: no free address: 16 used")
	})
}

func TestWhatTheAgentTellsIsAnEventOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		n.Tell(true, "ConfigurationRefused", "agent.yaml: colour: unknown key")
		time.Sleep(time.Second)
		n.Tell(false, "ConfigurationAccepted", "agent.yaml is right again")
		expectEvents(t, c, "Warning Node /node-1(node-1) ConfigurationRefused: agent.yaml: colour: unknown key",
			"Normal Node /node-1(node-1) ConfigurationAccepted: agent.yaml is right again")
	})
}

func TestRepeatedWarningsAreCountedAndRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		for range 720 { // an hour
			n.Warn(eni.Pod{UID: "u-1", Namespace: "shop", Name: "web-0"}, "NoAddress", "no free address")
			time.Sleep(5 * time.Second)
		}
		if got := c.calls("POST"); got != 1 {
			t.Errorf("%d events, want 1", got)
		}
		if got := c.calls("PATCH"); got < 10 || got > 15 {
			t.Errorf("%d counts in an hour", got)
		}
		if told := c.told(); !strings.Contains(told[0], " x") {
			t.Errorf("not counted: %q", told)
		}
	})
}

func TestEventsThatWereForgottenAreWrittenAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		n, _ := start(t, c, Options{})
		p := eni.Pod{UID: "u-1", Namespace: "shop", Name: "web-0"}
		n.Warn(p, "NoAddress", "x")
		synctest.Wait()
		for at := range c.objects {
			c.remove(at)
		}
		n.Warn(p, "NoAddress", "x")
		expectEvents(t, c, "Warning Pod shop/web-0(u-1) NoAddress: x x2")
	})
}

func TestEventsNeverBlockAndNeverPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.down = errors.New("no route to host")
		n, _ := start(t, c, Options{})
		for i := range 1000 {
			n.Warn(eni.Pod{UID: fmt.Sprint("u-", i), Namespace: "shop", Name: fmt.Sprint("web-", i)}, "NoAddress", "x")
		}
		time.Sleep(10 * time.Minute)
		c.do(func() { c.down = nil })
		time.Sleep(10 * time.Minute)
		if got := len(c.told()); got != backlog && got != backlog+1 { // one may be under way
			t.Errorf("%d events, want %d", got, backlog)
		}
	})
}

func TestAnEventThatIsRefusedHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.forbid = "POST events"
		n, _ := start(t, c, Options{})
		n.Warn(eni.Pod{UID: "1", Namespace: "gone", Name: "a"}, "NoAddress", "x")
		synctest.Wait()
		c.do(func() { c.forbid = "" })
		n.Warn(eni.Pod{UID: "2", Namespace: "shop", Name: "b"}, "NoAddress", "x"+strings.Repeat("ä", 1000))
		expectEvents(t, c, "Warning Pod shop/b(2) NoAddress: x"+strings.Repeat("ä", 511))
	})
}
