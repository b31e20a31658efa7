package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/cni"
	"github.com/enipool/enipool/pkg/config"
	"github.com/google/go-cmp/cmp"
)

// Who reads the logs of agent and plugin reads one format.
func TestTheLogHasTheLinesOfSlog(t *testing.T) {
	var ours, theirs bytes.Buffer
	small := &lineLog{w: &ours, info: true, warn: true, each: appendPairs(nil, "pid", 7, "command", "ADD")}
	for _, log := range []cni.Log{small, slog.New(slog.NewTextHandler(&theirs, nil)).With("pid", 7, "command", "ADD")} {
		log.Info("add", "pod", "", "key", "pods/a/eth0", "took", 1230*time.Microsecond, "address", netip.MustParseAddr("fd00::1"), "released", 2)
		log.Warn("reclaim failed", "error", errors.New("a \"quoted\"\tword\nof\\two lines"), "path", `C:\back`)
		log.Warn("runes", "a", "k=v", "b", "\u00fcber", "c", "\u00a0", "d", "\xff", "e", "\u2028", "f", "-")
	}
	if diff := cmp.Diff(cutTimes(theirs.String()), cutTimes(ours.String())); diff != "" {
		t.Errorf("slog -, ours +\n%s", diff)
	}
	for line := range strings.Lines(ours.String()) {
		word, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if at, err := time.Parse(time.RFC3339Nano, word); err != nil || time.Since(at) > time.Hour || len(word) < len("2006-01-02T15:04:05.000Z") {
			t.Errorf("time %q: %v", word, err)
		}
	}
}

// cutTimes takes each line's time away.
func cutTimes(text string) (lines []string) {
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, " ")
		lines = append(lines, rest)
	}
	return lines
}

func TestTheLogLevelSaysWhichLinesAreWritten(t *testing.T) {
	for level, want := range map[string]string{"debug": "info warn", "info": "info warn", "warn": "warn", "error": "", "": "warn"} {
		conf := config.Plugin{LogFile: "/some/file", LogLevel: level}
		if level == "" {
			conf.LogFile = ""
		}
		l, _ := openLog(conf)
		var out bytes.Buffer
		l.w = &out
		l.Info("info")
		l.Warn("warn")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, word, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Fields(word)[0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("level %q writes %q, want %q", level, got, want)
		}
	}
}
