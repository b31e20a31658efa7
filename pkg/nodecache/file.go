package nodecache

import (
	"errors"
	"io"
	"io/fs"

	"github.com/enipool/enipool/pkg/filelock"
	"golang.org/x/sys/unix"
)

// file is an open file that is used by plain system calls. An os.File would be registered with
// epoll, which is of no use here and costs five more system calls for each file, in a process
// that lives for two milliseconds.
type file struct {
	fd   int
	path string
}

func openFile(path string, flags int, mode uint32) (*file, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		default:
			return &file{fd, path}, nil
		}
	}
}

// Close closes the file.
func (f *file) Close() error { return unix.Close(f.fd) }

// ReadAt is io.ReaderAt's.
func (f *file) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		got, err := unix.Pread(f.fd, b[n:], at+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: f.path, Err: err}
		case got == 0:
			return n, io.EOF
		default:
			n += got
		}
	}
	return n, nil
}

// WriteAt is io.WriterAt's.
func (f *file) WriteAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		put, err := unix.Pwrite(f.fd, b[n:], at+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, &fs.PathError{Op: "write", Path: f.path, Err: err}
		default:
			n += put
		}
	}
	return n, nil
}

// lock takes a flock; got is false if somebody else has it and wait is not set.
func (f *file) lock(how int, wait bool) (got bool, err error) {
	if !wait {
		how |= unix.LOCK_NB
	}
	switch err := filelock.Flock(f.fd, how); {
	case !wait && errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, &fs.PathError{Op: "flock", Path: f.path, Err: err}
	}
	return true, nil
}

// unlock releases the flock; that of a closed file is released too.
func (f *file) unlock() error {
	err := unix.Flock(f.fd, unix.LOCK_UN)
	return errors.Join(err, f.Close())
}
