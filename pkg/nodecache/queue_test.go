package nodecache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func enqueue(t testing.TB, c Cache, need string) *Place {
	t.Helper()
	p, err := c.Enqueue(need, SinceBoot()+time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(p.fd) })
	return p
}

// die ends the place as a killed process does: the lock goes and the file stays.
func (p *Place) die() { _ = unix.Close(p.fd) }

func turn(t testing.TB, p *Place) <-chan struct{} {
	t.Helper()
	gone, err := p.Turn()
	if err != nil {
		t.Fatal(err)
	}
	return gone
}

func mustOpen(t testing.TB, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("it is still kept")
	}
}

func TestTheFirstHasItsTurnAndEachLeaverWakesTheNext(t *testing.T) {
	c := newCache(t, pool(1))
	if c.Queued() {
		t.Error("nobody waits, but somebody is in the queue")
	}
	var places []*Place
	for range 4 {
		places = append(places, enqueue(t, c, ""))
	}
	if !c.Queued() {
		t.Error("nobody is in the queue")
	}
	for i, p := range places {
		gone := turn(t, p)
		if i == 0 && gone != nil || i > 0 && gone == nil {
			t.Fatalf("number %d: its turn: %t", i, gone == nil)
		}
		if i == 0 {
			continue
		}
		select {
		case <-gone:
			t.Fatalf("number %d is woken though nobody left", i)
		default:
		}
		places[i-1].Leave()
		mustOpen(t, gone)
		if turn(t, p) != nil {
			t.Fatalf("number %d is the first and has not its turn", i)
		}
	}
	places[3].Leave()
	if c.Queued() {
		t.Error("the empty queue is still there")
	}
}

func TestAKilledOneKeepsNobody(t *testing.T) {
	c := newCache(t, pool(1))
	first, second, third := enqueue(t, c, ""), enqueue(t, c, ""), enqueue(t, c, "")
	gone := turn(t, third)
	second.die()
	mustOpen(t, gone)
	gone = turn(t, third)
	if gone == nil {
		t.Fatal("the third overtakes the first")
	}
	first.die()
	mustOpen(t, gone)
	if turn(t, third) != nil {
		t.Error("the dead keep the third")
	}
	third.die()
	if needs, err := c.Waiting(); len(needs) > 0 || err != nil {
		t.Errorf("the dead wait: %q, %v", needs, err)
	}
	if c.Queued() {
		t.Error("what the dead left is still there")
	}
}

// A process that is stopped holds its lock for as long as it is.
func TestOneThatHangsKeepsNobodyPastItsTime(t *testing.T) {
	c := newCache(t, pool(1))
	hangs, err := c.Enqueue("", SinceBoot()+20*time.Millisecond-pendingGrace)
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Leave()
	next := enqueue(t, c, "")
	if gone := turn(t, next); gone != nil {
		mustOpen(t, gone)
	}
	if needs, err := next.Before(); len(needs) > 0 || err != nil || turn(t, next) != nil {
		t.Errorf("it is still ahead: %q, %v", needs, err)
	}
}

func TestOtherNeedsAreToldAndKeepNobody(t *testing.T) {
	c := newCache(t, pool(1))
	bound, some, odd := enqueue(t, c, "eth1"), enqueue(t, c, ""), enqueue(t, c, "a.b c/d")
	defer bound.Leave()
	defer some.Leave()
	if turn(t, some) != nil || turn(t, odd) != nil {
		t.Error("one of another need keeps it")
	}
	needs, err := odd.Before()
	if got := fmt.Sprintf("%q %v", needs, err); got != `["eth1" ""] <nil>` {
		t.Error(got)
	}
	needs, err = c.Waiting()
	if got := fmt.Sprintf("%q %v", needs, err); got != `["eth1" "" "a.b c/d"] <nil>` {
		t.Error(got)
	}
	odd.Leave()
}

func TestAQueueThatCanNotBeIsAnError(t *testing.T) {
	c := newCache(t, pool(1))
	write(t, c.queueDir(), nil)
	if _, err := c.Enqueue("", 0); err == nil || !strings.Contains(err.Error(), "wait in line: create") {
		t.Error(err)
	}
	if _, err := c.Waiting(); err == nil {
		t.Error("a file is read as a queue")
	}
	if err := os.Remove(c.queueDir()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere", c.queueDir()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enqueue("", 0); err == nil {
		t.Error("it queues nowhere")
	}
	var none *Place
	none.Leave()
}

func TestWhatDoesNotBelongInTheQueueKeepsNobody(t *testing.T) {
	c := newCache(t, pool(1))
	p := enqueue(t, c, "")
	write(t, filepath.Join(c.queueDir(), "0"), nil)
	if err := unix.Mkfifo(filepath.Join(c.queueDir(), "1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if turn(t, p) != nil {
		t.Error("it is kept")
	}
	if got := ls(t, c.queueDir()); len(got) != 1 || got[0] != p.entry.name {
		t.Errorf("left: %v", got)
	}
	p.Leave()
}

// TestTheQueueServesByArrivalWhoeverDies plays arrivals, ends and deaths in any order:
// the first of each need who lives has its turn and nobody else has.
func TestTheQueueServesByArrivalWhoeverDies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := Cache{Path: filepath.Join(t.TempDir(), "node.cache")}
		var live []*Place
		remove := func(end func(*Place)) func(*rapid.T) {
			return func(rt *rapid.T) {
				if len(live) == 0 {
					rt.Skip("nobody waits")
				}
				at := rapid.IntRange(0, len(live)-1).Draw(rt, "who")
				end(live[at])
				live = append(live[:at:at], live[at+1:]...)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"come": func(rt *rapid.T) {
				p, err := c.Enqueue(rapid.SampledFrom([]string{"", "", "eth1", "eth2"}).Draw(rt, "need"), SinceBoot()+time.Minute)
				if err != nil {
					rt.Fatal(err)
				}
				live = append(live, p)
			},
			"leave": remove((*Place).Leave),
			"die":   remove((*Place).die),
			"": func(rt *rapid.T) {
				seen := map[string]bool{}
				var before []string
				for i, p := range live {
					needs, err := p.Before()
					if fmt.Sprint(needs) != fmt.Sprint(before) || err != nil {
						rt.Fatalf("number %d: %q before it, want %q; %v", i, needs, before, err)
					}
					if first := turn(t, p) == nil; first == seen[p.entry.need] {
						rt.Fatalf("number %d, need %q: its turn: %t", i, p.entry.need, first)
					}
					seen[p.entry.need] = true
					before = append(before, p.entry.need)
				}
				if _, err := c.Waiting(); err != nil || c.Queued() != (len(live) > 0) {
					rt.Fatalf("%d wait, queued: %t, %v", len(live), c.Queued(), err)
				}
			},
		})
		for _, p := range live {
			p.Leave()
		}
	})
}

// TestManyQueueAndLeaveAtOnce: those who find the queue empty take its folder away,
// while others come.
func TestManyQueueAndLeaveAtOnce(t *testing.T) {
	c := newCache(t, pool(1))
	errs := make(chan error)
	for range 8 {
		go func() {
			for range 200 {
				p, err := c.Enqueue("", SinceBoot()+time.Minute)
				if err != nil {
					errs <- err
					return
				}
				var st unix.Stat_t
				if _ = unix.Fstat(p.fd, &st); st.Nlink != 1 {
					errs <- fmt.Errorf("place with %d links", st.Nlink)
					return
				}
				for gone, err := p.Turn(); gone != nil; gone, err = p.Turn() {
					if err != nil {
						errs <- err
						return
					}
					<-gone
				}
				p.Leave()
			}
			errs <- nil
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if c.Queued() {
		t.Errorf("left: %v", ls(t, c.queueDir()))
	}
}
