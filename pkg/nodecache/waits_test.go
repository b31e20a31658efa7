package nodecache

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func takeWaits(t testing.TB, c Cache) []Wait {
	t.Helper()
	list, err := c.TakeWaits()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEachWaitIsTakenOnce(t *testing.T) {
	c := newCache(t, pool(1))
	if got := takeWaits(t, c); got != nil {
		t.Errorf("before any: %v", got)
	}
	want := []Wait{{1250 * time.Millisecond, Served}, {0, Exhausted}, {100 * time.Second, Failed}}
	for _, w := range want {
		if err := c.RecordWait(w); err != nil {
			t.Fatal(err)
		}
	}
	if got := takeWaits(t, c); !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := takeWaits(t, c); got != nil {
		t.Errorf("taken again: %v", got)
	}
}

func TestNoWaitIsLostBetweenWritersAndTheReader(t *testing.T) {
	c := newCache(t, pool(1))
	const writers, each = 4, 100
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				for c.RecordWait(Wait{time.Millisecond, Served}) != nil { // the lock was busy for longer than it is tried
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	got := 0
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		list, err := c.TakeWaits()
		if err != nil && !strings.Contains(err.Error(), unix.EWOULDBLOCK.Error()) {
			t.Fatal(err)
		}
		got += len(list)
	}
	if got += len(takeWaits(t, c)); got != writers*each {
		t.Errorf("%d of %d waits arrived", got, writers*each)
	}
}

func TestWaitsThatNobodyReadsDoNotFillTheDisk(t *testing.T) {
	c := newCache(t, pool(1))
	write(t, c.waitsFile(), []byte(strings.Repeat("x", maxWaits)))
	if err := c.RecordWait(Wait{0, Served}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(c.waitsFile()); err != nil || info.Size() != maxWaits {
		t.Errorf("%v, %v", info, err)
	}
	if got := takeWaits(t, c); got != nil {
		t.Errorf("what is no wait is taken for one: %v", got)
	}
	if err := c.RecordWait(Wait{0, Served}); err != nil || len(takeWaits(t, c)) != 1 {
		t.Errorf("the next is not recorded: %v", err)
	}
}

func TestDamagedWaitsAreLeftOut(t *testing.T) {
	c := newCache(t, pool(1))
	write(t, c.waitsFile(), []byte("5 served\n\n-1 served\n7 lost\nserved\n8 exhausted\n9 ser"))
	if got, want := fmt.Sprint(takeWaits(t, c)), "[{5ms served} {8ms exhausted}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := os.Remove(c.waitsFile()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(c.waitsFile(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.RecordWait(Wait{}); err == nil { // and it is not waited for
		t.Error("a FIFO takes waits")
	}
}
