package status

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An agent that is stopped or hangs says nothing more. Its last word counts for as long
// only as it would have given a sign of life.
func TestAnAgentThatHangsIsNeitherReadyNorVouchesForTheFastPath(t *testing.T) {
	s := example()
	s.Beat, s.FastPath = BeatEvery, &FastPath{Out: 1}
	runs := Process{Asked: true, Running: true, PID: 708}
	const off = "off: the agent is silent"
	for _, tt := range []struct {
		age       time.Duration
		process   Process
		agent, fp string
		silent    bool
	}{
		{4 * time.Second, Process{}, "ready, mode batch by equation, heard 4s ago", "on (", false},
		{4 * time.Second, runs, "ready, mode batch by equation, heard 4s ago", "on (", false},
		{20 * time.Second, runs, "ready, mode batch by equation, heard 20s ago", "not known, it was on", false},
		{41 * time.Second, Process{}, "not running, or hangs? last heard of 41s ago", off, true},
		{41 * time.Second, runs, "running (process 708), and silent: look at its log; last heard of 41s ago", off, true},
		{41 * time.Second, Process{Asked: true, Running: true}, "running, and silent: look at its log; last heard of 41s ago", off, true},
		{4 * time.Second, Process{Asked: true}, "not running: start it; where it ends again its log says why; last heard of 4s ago", off, false},
		{4 * time.Second, Process{Asked: true, Running: true, PID: 708, Stopped: true}, "stopped: kill -CONT 708 lets it go on; last heard of 4s ago", off, false},
	} {
		lines := strings.Join(s.Lines(noon.Add(tt.age), tt.process), "\n")
		if !strings.Contains(lines, "agent:\t"+tt.agent) || !strings.Contains(lines, "fast path:\t"+tt.fp) || s.Silent(noon.Add(tt.age)) != tt.silent {
			t.Errorf("after %s, %+v, silent %t:\n%s", tt.age, tt.process, s.Silent(noon.Add(tt.age)), lines)
		}
	}
}

func TestATouchedFileTellsOfAnAgentThatHasNothingNewToSay(t *testing.T) {
	f := File{filepath.Join(t.TempDir(), "status.json")}
	s := example()
	s.Beat = BeatEvery
	write(t, f, s)
	if err := f.Touch(noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	got, err := f.Read()
	if err != nil || !got.LastHeard().Equal(noon.Add(time.Hour)) || got.Silent(noon.Add(time.Hour+30*time.Second)) || !got.Silent(noon.Add(time.Hour+time.Minute)) {
		t.Errorf("heard %s, %v", got.LastHeard(), err)
	}
	if err := (File{f.Path + "none"}).Touch(noon); err == nil {
		t.Error("no error without a file")
	}
	// An agent that gives no such signs is given until its next tick is long due.
	s.Beat, s.Heard = 0, time.Time{}
	if s.Silent(noon.Add(2*time.Minute)) || !s.Silent(noon.Add(4*time.Minute)) {
		t.Error("an earlier agent's silence is judged by its beat")
	}
}
