package nodecache

import (
	"errors"
	"fmt"
	"os"

	"github.com/enipool/enipool/pkg/mounts"
	"golang.org/x/sys/unix"
)

// UnwritableError is returned where the file system refuses to write the cache: then no pod
// gets an address, and none is freed.
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

// CheckWritable returns an error if the cache can't be written; it writes nothing. A cache that
// is missing is no error: the agent makes it.
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
	todo := mounts.Todo(c.Path, err)
	if todo == "" {
		return fmt.Errorf("%s node cache: %w", doing, err)
	}
	return &UnwritableError{err, todo}
}
