package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRepairsInARowAreAFight(t *testing.T) {
	const rule = "add rule 512: from all lookup 100 proto 70"
	every := func(n int, d time.Duration, changes ...string) (rows []repair) {
		for i := range n {
			rows = append(rows, repair{time.Duration(i) * d, changes})
		}
		return rows
	}
	growing := func() (rows []repair) {
		for i := range 10 {
			rows = append(rows, repair{time.Duration(i) * time.Second, []string{fmt.Sprintf("nftables: put map source4 right: add 10.0.0.%d", i)}})
		}
		return rows
	}
	for name, tt := range map[string]struct {
		repairs []repair
		want    string // what is told, and when
		end     string // what is told at the end
	}{
		"once":                     {every(1, 0, rule), "", ""},
		"nine times":               {every(9, time.Second, rule), "", ""},
		"ten times within seconds": {every(10, time.Second, rule), "9s: 10 of " + rule + " in 9s", "10 of " + rule},
		"ten times at resyncs":     {every(10, time.Minute, rule), "9m0s: 10 of " + rule + " in 9m0s", "10 of " + rule},
		"with long rests":          {every(100, 3*time.Minute, rule), "", ""},
		"other things each time":   {slicesOf(100), "", ""},
		"a table that goes while it is read": {slices.Concat(every(5, time.Second, "nftables: create table inet enipool"), after(5*time.Second, every(5, time.Second, "nftables: make table inet enipool from scratch: it has flags"))),
			"9s: 10 of nftables: make table inet enipool from scratch: it has flags in 9s", "10 of nftables: make table inet enipool from scratch: it has flags"},
		"a set that lacks this or that": {growing(), "9s: 10 of nftables: put map source4 right: add 10.0.0.9 in 9s", "10 of nftables: put map source4 right: add 10.0.0.9"},
		"twice in one comparison":       {every(5, time.Second, rule, rule), "", ""},
		"told again after ten minutes": {every(700, time.Second, rule), "9s: 10 of " + rule + " in 9s\n10m9s: 610 of " + rule + " in 10m9s",
			"700 of " + rule},
		"two things":                     {every(10, time.Second, rule, "b"), "9s: 10 of " + rule + " in 9s\n9s: 10 of b in 9s", "10 of " + rule + "\n10 of b"},
		"connections that are forgotten": {every(100, time.Second, "forget 3 connections of pods", "move the marks of 5 connections to mask 0xff"), "", ""},
	} {
		f, got := fights{}, ""
		at := time.Duration(0)
		for _, r := range tt.repairs {
			at = r.at
			for _, told := range f.note(r.changes, time.Hour+at, fightPause) {
				got += fmt.Sprintf("%s: %d of %s in %s\n", at, told.times, told.change, told.last-told.first)
			}
			if tt.want != "" && strings.Contains(got, rule) && !f.has(rule) {
				t.Errorf("%s: %s is no part of it", name, rule)
			}
		}
		if got = strings.TrimSpace(got); got != tt.want {
			t.Errorf("%s: told\n%s\nwant\n%s", name, got, tt.want)
		}
		if n := len(f.list()); n != strings.Count(tt.end, " of ") || len(f.end(time.Hour+at+fightPause, fightPause)) > 0 {
			t.Errorf("%s: %d fights, or they end too soon", name, n)
		}
		end := ""
		for _, told := range f.end(time.Hour+at+fightPause+1, fightPause) {
			end += fmt.Sprintf("%d of %s\n", told.times, told.change)
		}
		if end = strings.TrimSpace(end); end != tt.end || len(f) > 0 {
			t.Errorf("%s: at the end told\n%s\nwant\n%s; %d are kept", name, end, tt.end, len(f))
		}
	}
}

// repair is a comparison that put something right.
type repair struct {
	at      time.Duration
	changes []string
}

// after are the same repairs that much later.
func after(d time.Duration, rows []repair) []repair {
	for i := range rows {
		rows[i].at += d
	}
	return rows
}

// slicesOf are n repairs of as many things.
func slicesOf(n int) (rows []repair) {
	for i := range n {
		rows = append(rows, repair{time.Duration(i) * time.Second, []string{fmt.Sprintf("add route 10.0.0.%d dev eth0", i)}})
	}
	return rows
}

func TestAFloodOfRepairsIsKeptInBounds(t *testing.T) {
	f := fights{}
	for i := range 3 * mostFights {
		f.note([]string{fmt.Sprint("add route ", i)}, time.Second, fightPause)
	}
	if len(f) > mostFights {
		t.Errorf("%d are kept", len(f))
	}
}

// Each kind of thing has its own place to look at.
func TestAFightTellsWhereToLook(t *testing.T) {
	for change, want := range map[string]string{
		"add rule 512: from all lookup 100":                     "systemd-networkd",
		"remove route 10.0.0.0/8 dev eth0 table 101":            "systemd-networkd",
		"nftables: create table inet enipool":                   "`nft monitor` names",
		"iptables -t nat: add chain ENIPOOL-SNAT":               "firewalld",
		"add sysctl net/ipv4/ip_forward=1":                      "/etc/sysctl.d",
		"limit default/web: limit what eni0123 sends to 1 Mbit": "tc monitor",
	} {
		if got := (fight{change: change}).seek(); !strings.Contains(got, want) {
			t.Errorf("%s: look for %s, want %s", change, got, want)
		}
	}
}

// logged is a log that a test reads.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func TestARepairThatSomebodyUndoesIsToldOnceAndUntilItStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		const rule = "add rule 512: from all lookup 100 proto 70"
		_, n := one(t, large, func(n *testNode) {
			rarely(&n.conf)
			n.conf.Resync = time.Minute
			n.w.log = slog.New(slog.NewTextHandler(&log, nil))
		})
		defer n.stop()
		undo := func(lines ...string) {
			n.mu.Lock()
			n.undone = lines
			n.mu.Unlock()
		}
		undo(rule)
		for range 300 {
			n.disturb <- struct{}{}
			sleep(time.Second)
		}
		if st := n.status(); len(st.Undone) != 1 || st.Undone[0].Change != rule || st.Undone[0].Times < 290 || !strings.Contains(st.Problem, rule) || !st.Ready {
			t.Errorf("status tells %+v, problem %q, ready %t", st.Undone, st.Problem, st.Ready)
		}
		if warned, info := log.count("level=WARN msg=\"what is repaired is undone again and again"), log.count("kernel repaired"); warned != 1 || info > fightRepairs+1 {
			t.Errorf("%d warnings and %d lines for repairs in five minutes", warned, info)
		}
		undo()
		sleep(50 * time.Second)
		n.disturb <- struct{}{} // a tick: the next one by itself comes well after the end of the fight
		sleep(fightPause - 45*time.Second)
		if st := n.status(); len(st.Undone) > 0 || st.Problem != "" || log.count("what was undone again and again stays") != 1 {
			t.Errorf("%s after it was undone last status tells %+v, problem %q", fightPause+5*time.Second, st.Undone, st.Problem)
		}
		sleep(3 * time.Minute)
		if st := n.status(); len(st.Undone) > 0 || st.Problem != "" || log.count("what was undone again and again stays") != 1 {
			t.Errorf("when it stays status tells %+v, problem %q; log: %d", st.Undone, st.Problem, log.count("stays"))
		}
	})
}

// The kernel names who changes nftables, and nobody else's work is put down to it.
func TestWhoUndoesARepairIsToldWhereTheKernelNamesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		_, n := one(t, large, func(n *testNode) {
			rarely(&n.conf)
			n.conf.Resync = time.Minute
			n.w.log = slog.New(slog.NewTextHandler(&log, nil))
		})
		defer n.stop()
		for _, tt := range []struct{ change, changer, want string }{
			{"nftables: create table inet enipool", "", "; who it may be: the one that `nft monitor` names"},
			{"nftables: create table inet enipool", "nft (process 7)", "; by nft (process 7); what starts it: conf/TROUBLESHOOTING.md has the commands"},
			{"nftables: create table inet enipool", "nft (process 7), started by `sh /x` (process 6)", "; by nft (process 7), started by `sh /x` (process 6)"},
			{"add rule 512: from all lookup 100 proto 70", "nft (process 7), started by `sh /x` (process 6)", "; who it may be: a second agent"},
		} {
			n.mu.Lock()
			n.undone, n.changer = []string{tt.change}, tt.changer
			n.mu.Unlock()
			for range 2 * fightRepairs {
				n.disturb <- struct{}{}
				sleep(time.Second)
			}
			if st := n.status(); len(st.Undone) == 0 || !strings.Contains(st.Undone[0].String(), tt.want) || !strings.Contains(st.Problem, tt.want) {
				t.Errorf("%s by %q: status tells %v", tt.change, tt.changer, st.Undone)
			}
			n.mu.Lock()
			n.undone = nil
			n.mu.Unlock()
			sleep(5 * time.Minute)
		}
		if log.count("who=\"nft (process 7), started by `sh /x` (process 6)\"") != 1 {
			t.Errorf("log: %s", log.text.String())
		}
	})
}
