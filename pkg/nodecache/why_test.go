package nodecache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatTheAgentSaysIsOneShortLine(t *testing.T) {
	c := newCache(t, pool(1))
	if got := c.Why(); got != "" {
		t.Errorf("nobody said anything, but %q", got)
	}
	for _, tt := range []struct{ text, want string }{
		{"target 48, at most 110, last error: subnet is full", "target 48, at most 110, last error: subnet is full"},
		{"two\nlines\tof  text\n", "two lines of text"},
		{"a bell \a and é", "a bell ? and ??"},
		{strings.Repeat("x", 500), strings.Repeat("x", 400)},
		{strings.Repeat("x", 399) + " y", strings.Repeat("x", 399)},
	} {
		if err := c.SetWhy(tt.text); err != nil {
			t.Fatal(err)
		}
		if got := c.Why(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	for range 2 {
		if err := c.SetWhy(" \n"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(c.whyFile()); !errors.Is(err, unix.ENOENT) || c.Why() != "" {
			t.Errorf("%v, %q", err, c.Why())
		}
	}
}

// A file that somebody else wrote can't break a message, or keep an ADD.
func TestAnyFileSaysOneShortLine(t *testing.T) {
	c := newCache(t, pool(1))
	write(t, c.whyFile(), []byte("  first \x1b[31m line\nsecond"))
	if got := c.Why(); got != "first ?[31m line" {
		t.Errorf("%q", got)
	}
	write(t, c.whyFile(), []byte("\nsecond"))
	if got := c.Why(); got != "" {
		t.Errorf("%q", got)
	}
	remove(t, c.whyFile())
	fifo(t, c.whyFile())
	if got := c.Why(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestTheSameWordIsNotWrittenTwice(t *testing.T) {
	c := newCache(t, pool(1))
	inode := func() uint64 {
		var st unix.Stat_t
		if err := errors.Join(c.SetWhy("no room"), unix.Stat(c.whyFile(), &st)); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	if first, second := inode(), inode(); first != second {
		t.Error("it was written twice")
	}
	err := Cache{Path: filepath.Join(t.TempDir(), "none", "node.cache")}.SetWhy("no room")
	if !errors.Is(err, unix.ENOENT) || !strings.HasPrefix(err.Error(), "say why the pool is as it is: ") {
		t.Errorf("no folder: %v", err)
	}
}
