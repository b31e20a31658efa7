package web

import (
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/status"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sized is a status with those sizes of a node whose limits are known.
func sized(demand, need, target int) status.Status {
	return status.Status{Demand: demand, Need: need, Target: target, ENILimit: 4}
}

func TestTheHistoryIsAnHourAndBounded(t *testing.T) {
	var h history
	for at := noon.Add(-3 * time.Hour); at.Before(noon); at = at.Add(time.Second) {
		h.noteSizes(sized(int(at.Unix()%7), 16, 16), at)
		h.noteStep(status.Step{Action: "assign", Count: int(at.Unix())}, at)
	}
	samples, steps := h.copied()
	if most := int(kept/sampleTime) + 1; len(samples) > most || cap(h.samples) > 4*most {
		t.Errorf("%d samples in room for %d", len(samples), cap(h.samples))
	}
	if first := samples[0].at; first.After(noon.Add(-kept)) {
		t.Errorf("the first sample is of %s: the hour's beginning is not known", first)
	}
	if len(steps) != mostSteps || cap(h.steps) > 4*mostSteps {
		t.Errorf("%d steps in room for %d", len(steps), cap(h.steps))
	}
}

func TestTheSameStepIsOneLine(t *testing.T) {
	var h history
	for i := range 3 {
		h.noteStep(status.Step{Action: "assign", Object: "eni-1", Count: 16, Reason: "up"}, noon.Add(time.Duration(i)*time.Second))
	}
	_, steps := h.copied()
	if got, want := stepLineOf(steps[0]), (stepLine{"12:00:02", "2026-03-01T12:00:02Z", "assign 16 eni-1, 3 times", "up", ""}); len(steps) != 1 || got != want {
		t.Errorf("%d lines: %+v", len(steps), got)
	}
}

// A burst that is over within a sample shows, and does not last until the next one.
func TestAChartShowsABurstAndItsEnd(t *testing.T) {
	var h history
	begin := noon.Add(-10 * time.Minute)
	h.noteSizes(sized(0, 0, 100), begin)
	h.noteSizes(sized(50, 100, 100), begin.Add(5*time.Minute))
	h.noteSizes(sized(0, 0, 100), begin.Add(5*time.Minute+time.Second))
	samples, _ := h.copied()
	c := chartOf(samples, noon)
	var paths []string
	for _, l := range c.Lines {
		paths = append(paths, l.Name+" "+l.Path)
	}
	want := []string{"demand M0 100H500V50H525V100H1000", "need M0 100H500V0H525V100H1000", "target M0 0H1000"}
	if diff := cmp.Diff(want, paths); diff != "" || c.Most != 100 || c.Span != "10m" {
		t.Errorf("most %d, span %s, -want +got:\n%s", c.Most, c.Span, diff)
	}
	rows := []chartRow{{"11:50 to 12:00", "50", "100", "100"}}
	if diff := cmp.Diff(rows, c.Rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAChartHasNoNeedWhereItIsNotKnown(t *testing.T) {
	var h history
	h.noteSizes(status.Status{Demand: 4, Target: 8}, noon)
	samples, _ := h.copied()
	c := chartOf(samples, noon.Add(time.Minute))
	if c.Lines[1].Path != "" || c.Lines[1].Now != "not known" || !strings.HasPrefix(c.Lines[0].Path, "M") {
		t.Errorf("%+v", c.Lines)
	}
	h.noteSizes(sized(4, 16, 8), noon.Add(time.Minute))
	samples, _ = h.copied()
	if got := chartOf(samples, noon.Add(2*time.Minute)).Lines[1].Path; got != "M800 0H1000" {
		t.Errorf("need is drawn %q", got)
	}
}

// A clock that is set back adds no samples out of order.
func TestAClockThatIsSetBackKeepsTheOrder(t *testing.T) {
	var h history
	h.noteSizes(sized(1, 1, 1), noon)
	h.noteSizes(sized(2, 2, 2), noon.Add(-time.Hour))
	if samples, _ := h.copied(); len(samples) != 1 || samples[0].end.demand != 2 {
		t.Errorf("%+v", samples)
	}
}
