// Package mounts says which mount of the node a path is on, and what to do where its file
// system refuses to be written.
package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// RefusedError is returned where a file system refuses to be written.
type RefusedError struct {
	Err  error  // what was refused: it names the path
	Todo string // see Todo
}

// Error says what was refused, which file system it is and what to do.
func (e *RefusedError) Error() string { return e.Err.Error() + "; " + e.Todo }

// Unwrap returns what was refused.
func (e *RefusedError) Unwrap() error { return e.Err }

// Explain makes a RefusedError of err, which came of writing path, if the file system is the
// cause; else it returns err.
func Explain(path string, err error) error {
	if todo := Todo(path, err); todo != "" {
		return &RefusedError{err, todo}
	}
	return err
}

// Todo says which file system path is on and what to do about it, "" if that is not the cause
// of err.
func Todo(path string, err error) string {
	readOnly := errors.Is(err, unix.EROFS)
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
	if !readOnly && !full && !errors.Is(err, unix.EIO) {
		return ""
	}
	m := mountOf(path)
	todo := "file system " + m.String()
	switch {
	case readOnly && m.readOnly:
		return todo + " is mounted read-only: mount -o remount,bind,rw " + m.point
	case readOnly:
		return todo + " is read-only: look for errors in the kernel's log (dmesg), then mount -o remount,rw " + m.point
	case full:
		return todo + " is full: free space there (df " + m.point + ")"
	}
	return todo + " fails: look for errors in the kernel's log (dmesg)"
}

// mount is one of the node's mounts.
type mount struct {
	point, kind string
	readOnly    bool // by itself, whatever its file system is
}

func (m mount) String() string { return m.kind + " at " + m.point }

// mountOf returns the mount that path is on.
func mountOf(path string) mount {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	if full, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(full, filepath.Base(path))
	}
	return findMount(string(text), path)
}

// findMount returns the mount of path by the words of /proc/self/mountinfo. Of several at
// one point the last covers the others.
func findMount(mountinfo, path string) mount {
	found := mount{point: "/", kind: "unknown"}
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		words, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(words) < 6 || len(kind) == 0 {
			continue
		}
		point := words[4]
		for _, pair := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
			point = strings.ReplaceAll(point, pair[0], pair[1])
		}
		if len(point) < len(found.point) || path != point && !strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/") {
			continue
		}
		found = mount{point, kind[0], strings.HasPrefix(words[5]+",", "ro,")}
	}
	return found
}
