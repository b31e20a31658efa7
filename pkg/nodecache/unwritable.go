package nodecache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// UnwritableError is returned where the file system refuses to write the cache: nothing can
// be given to a pod then, nor taken back.
type UnwritableError struct {
	Err  error
	Todo string // which file system it is and what to do about it
}

// Error says what was refused and what to do.
func (e *UnwritableError) Error() string {
	return "node cache can't be written: " + e.Err.Error() + "; " + e.Todo
}

// Unwrap returns what was refused.
func (e *UnwritableError) Unwrap() error { return e.Err }

// CheckWritable looks whether the cache may be written, and writes nothing. A cache that is
// missing may be: the agent makes it.
func (c Cache) CheckWritable() error {
	err := unix.Access(c.Path, unix.W_OK)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return c.unwritable("write", &os.PathError{Op: "write", Path: c.Path, Err: err})
}

// unwritable makes an UnwritableError of err if the file system is the cause; else it
// says what was being done to the cache.
func (c Cache) unwritable(doing string, err error) error {
	if Unusable(err) { // it names the cache
		return err
	}
	readOnly := errors.Is(err, unix.EROFS)
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
	if !readOnly && !full && !errors.Is(err, unix.EIO) {
		return fmt.Errorf("%s node cache: %w", doing, err)
	}
	m := mountOf(c.Path)
	todo := "file system " + m.String()
	switch {
	case readOnly && m.readOnly:
		todo += " is mounted read-only: mount -o remount,bind,rw " + m.point
	case readOnly:
		todo += " is read-only: look for errors in the kernel's log (dmesg), then mount -o remount,rw " + m.point
	case full:
		todo += " is full: free space there (df " + m.point + ")"
	default:
		todo += " fails: look for errors in the kernel's log (dmesg)"
	}
	return &UnwritableError{err, todo}
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
