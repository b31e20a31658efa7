package iptexec

import (
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFileInMemoryHoldsTheWholeTextOrIsNone(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	const limit = 4096
	text := strings.Repeat("rule\n", limit)
	fd, err := memoryFile(text)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if got := readContents(uintptr(fd)); got != text {
		t.Errorf("%d bytes, want %d", len(got), len(text))
	}
	// Behind the limit of a process's files the kernel writes no more, and says so by the number.
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := memoryFile(text); !errors.Is(err, io.ErrShortWrite) || strings.Contains(err.Error(), "%!") {
		t.Errorf("error %v, want a short write", err)
	}
}

func TestAProgramReadsItsInputFromTheStartAndIsQuotedWhereItFails(t *testing.T) {
	out, err := Run("/bin/sh", []string{"-c", "cat"}, "a\nb\n")
	if err != nil || out != "a\nb\n" {
		t.Errorf("it printed %q, %v", out, err)
	}
	_, err = Run("/bin/sh", []string{"-c", "echo no >&2; echo way >&2; exit 3"}, "")
	if err == nil || err.Error() != "run /bin/sh: exit status 3 no way" {
		t.Errorf("error %v", err)
	}
	_, err = Run("/bin/sh", []string{"-c", "kill -9 $$"}, "")
	if err == nil || !strings.HasPrefix(err.Error(), "run /bin/sh: killed by signal: killed") {
		t.Errorf("error %v of a program that was killed", err)
	}
	if _, err = Run("/nowhere", nil, ""); !errors.Is(err, unix.ENOENT) {
		t.Errorf("error %v of a program that is not there", err)
	}
}
