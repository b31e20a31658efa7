package nodecache

import (
	"errors"
	"io"
	"runtime/debug"

	"github.com/enipool/enipool/pkg/eni"
	"golang.org/x/sys/unix"
)

// mapped is a file that is mapped into memory: of most lines of a large one only the first words
// are read, and to copy them all would take longer.
type mapped []byte

// mapFrom is the size from which it pays to map a file, in a process that does so once:
// smaller ones are copied in less time than a mapping is made and taken away.
const mapFrom = 2048 * lineSize

// ReadAt is io.ReaderAt's.
func (m mapped) ReadAt(b []byte, at int64) (n int, err error) {
	if at < int64(len(m)) {
		n = copy(b, m[at:])
	}
	if n < len(b) {
		err = io.EOF
	}
	return n, err
}

// decode decodes the file, which holds size bytes.
func (f *file) decode(size int64, only *eni.Key) (snap *snapshot, err error) {
	if size < mapFrom {
		return decode(f, size, only)
	}
	m, err := unix.Mmap(f.fd, 0, int(size), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil { // some file systems have no such thing
		return decode(f, size, only)
	}
	// If somebody cuts the file or its disk fails, reading the mapping is a fault of the processor
	// and no error of a call: without this it would end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			snap, err = nil, damaged("it can't be read: %v", p)
		default:
			panic(p)
		}
		err = errors.Join(err, unix.Munmap(m))
	}()
	return decode(mapped(m), size, only)
}
