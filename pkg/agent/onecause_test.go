package agent

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cloud/sim"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/health"
	"github.com/enipool/enipool/pkg/nodecache"
	"github.com/enipool/enipool/pkg/pool"
	"github.com/enipool/enipool/pkg/status"
	"github.com/enipool/enipool/pkg/status/web"
	"pgregory.net/rapid"
)

// heardOf is what people are told of a node in each of the ways in which they are.
type heardOf struct {
	status       status.Status
	add          string // what the error of an ADD says of the agent
	condition    health.Report
	event, words string
	metrics      string
}

// tellAll tells what is known of a node whose pods have lacked addresses for long enough.
func tellAll(t *rapid.T, a *Agent, now time.Duration) (h heardOf) {
	m := web.New("v1")
	a.Events = m
	a.Clock = wallClock{a.Clock, func() time.Time { return time.Unix(0, 0).Add(now) }}
	a.Publish = func(s status.Status, why string) error {
		h.status, h.add = s, why
		return nil
	}
	a.Report = func(r health.Report) { h.condition = r }
	a.Warn = func(_ eni.Pod, reason, message string) { h.event, h.words = reason, message }
	a.waiting = []nodecache.PendingADD{{Owner: eni.Owner{Namespace: "default", Pod: "web"}, Failed: true}}
	*a.mem.Health = health.New()
	a.mem.Health.Lacking = now / 2
	a.report(now)
	w := httptest.NewRecorder()
	m.Handler(nil, false).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	h.metrics = w.Body.String()
	return h
}

// Whatever keeps a node from addresses: all who are told hear of the same cause, in the same words.
func TestAllAreToldTheSameCause(t *testing.T) {
	w := newWorld(t, sim.Options{}, subnet("subnet-a", "10.0.1.0/24"))
	n := w.addNode(testConfig("n1"), sim.NodeSpec{Limits: large, Subnet: "subnet-a"})
	rapid.Check(t, func(t *rapid.T) {
		r, s, there := anyReasons(t)
		a := n.agent(&life{killAt: -1}, w.log)
		a.view, a.mem.Creates, a.links, a.backoffs, a.decision, a.demand, a.sized, a.planned = *r.view, r.creates, r.links, r.backoffs, r.decision, r.demand, true, true
		a.view.known = rapid.IntRange(0, 3).Draw(t, "the cloud has answered") > 0
		a.status.Most, a.demand.waiting = r.status.Most, rapid.IntRange(1, 3).Draw(t, "waiting")
		a.causes = r.slotCauses(s, there)
		a.targetCauses = pool.Rank(pool.TargetCauses(pool.Config{}, s, 9))
		if rapid.IntRange(0, 7).Draw(t, "damage") == 0 {
			a.cacheErr = nodecache.ErrDamaged
		}
		h := tellAll(t, a, r.now)
		word, reason := "", health.NoFreeAddress
		if len(h.status.Causes) > 0 {
			first := h.status.Causes[0]
			i := slices.IndexFunc(pool.Kinds(), func(k pool.Kind) bool { return k.String() == first.Kind })
			word, reason = first.Kind, pool.Kinds()[i].Reason()
			for by, text := range map[string]string{"the status": h.status.Problem, "an ADD": h.add, "the event": h.words, "the condition": h.condition.Message,
				"pool show": strings.Join(h.status.Lines(h.status.Written, status.Process{}), "\n")} {
				if !strings.Contains(text, first.What) {
					t.Errorf("%s says %q, the first cause is %q", by, text, first.What)
				}
			}
		}
		if h.status.Problem != "" && !strings.Contains(h.add, "cause: "+h.status.Problem) {
			t.Errorf("an ADD says %q, want the cause under the name that `pool show` and README have for it", h.add)
		}
		if !h.condition.Faulty || h.condition.Reason != reason || h.event != reason {
			t.Errorf("the condition has %s (faulty: %t), the event %s, the first of %+v is told as %s", h.condition.Reason, h.condition.Faulty, h.event, h.status.Causes, reason)
		}
		for _, k := range pool.Kinds() {
			if is := strings.Contains(h.metrics, "enipool_cause{kind=\""+k.String()+"\"} 1\n"); is != (k.String() == word) {
				t.Errorf("the metric of %s is %t, the first cause is %q", k, is, word)
			}
		}
	})
}
