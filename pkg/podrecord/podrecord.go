// Package podrecord keeps what a pod asked for beyond its addresses, host ports
// and limits, in a small file per sandbox beside the node cache. It is written
// before the kernel is touched and removed when the kernel is clean, so whoever
// cleans up or rebuilds needs no configuration: DEL after a crash, GC, CHECK and
// the agent. A pod that asks for nothing has no file.
package podrecord

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/mounts"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// ErrDamaged is a record that can't be understood. Nothing in it can be trusted;
// what it asked for is found in the kernel by the pod's address.
var ErrDamaged = errors.New("pod record is damaged")

// ErrVersion is a record that a later enipool wrote, which says that this one can't read
// it. It stays while its pod lives; what it asked for is found as with a damaged one.
var ErrVersion = errors.New("pod record has a newer format")

// Unreadable tells whether err says that a record is there which can't be understood.
func Unreadable(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion)
}

// FileError says which record can't be read.
type FileError struct {
	Path string
	Err  error
}

// Error says which file it is and why.
func (e *FileError) Error() string { return fmt.Sprintf("read %s: %v", e.Path, e.Err) }

// Unwrap returns why.
func (e *FileError) Unwrap() error { return e.Err }

// Of tells whether the unreadable record is the attachment's: its file's name tells.
func (e *FileError) Of(k eni.Key) bool { return filepath.Base(e.Path) == netconf.HostDevice(k) }

// Folder is where the records of a node are.
type Folder struct{ Path string }

// Beside returns the folder that belongs to the node cache at the path.
func Beside(cachePath string) Folder { return Folder{cachePath + ".pods"} }

// Record is what one attachment asked for.
type Record struct {
	Key      eni.Key
	Pod      string        // for people
	Firewall ipam.Firewall // where its ports are
	Addrs    []netip.Addr
	// Turn orders records of one sandbox that ask for the same host port: the lowest
	// has it, and the next one takes over when that is gone.
	Turn int
	netconf.Extras
}

func (f Folder) pathOf(k eni.Key) string { return filepath.Join(f.Path, netconf.HostDevice(k)) }

// Read returns the record of the attachment; found is false where it has none.
func (f Folder) Read(key eni.Key) (record Record, found bool, err error) {
	text, err := readFile(f.pathOf(key))
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Record{}, false, nil
	}
	if err == nil {
		record, err = decodeRecord(text)
	}
	if err != nil {
		return Record{}, true, fmt.Errorf("read record of %s: %w", key, err)
	}
	// The name is a hash: the file may be another attachment's.
	return record, record.Key == key, nil
}

// Write puts the record in place as a whole, and makes the folder if it is missing.
func (f Folder) Write(r Record) error {
	err := f.replaceFile(f.pathOf(r.Key), encodeRecord(r))
	if errors.Is(err, unix.ENOENT) {
		if err = unix.Mkdir(f.Path, 0o700); err == nil || errors.Is(err, unix.EEXIST) {
			err = f.replaceFile(f.pathOf(r.Key), encodeRecord(r))
		}
	}
	if err != nil {
		return mounts.Explain(f.Path, fmt.Errorf("write record of %s to %s: %w", r.Key, f.pathOf(r.Key), err))
	}
	return nil
}

// replaceFile writes beside and renames, so that nobody reads half a record. What a
// crash leaves there is overwritten by the next try or removed by All.
func (f Folder) replaceFile(name string, text []byte) error {
	fd, err := unix.Open(name+temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	n, err := unix.Write(fd, text)
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if err == nil && n < len(text) { // a full disk takes a part of it without an error
		err = unix.ENOSPC
	}
	if err == nil {
		err = unix.Rename(name+temporary, name)
	}
	if err != nil {
		_ = unix.Unlink(name + temporary)
	}
	return err
}

const temporary = ".new"

// Remove removes the attachment's record, if there is one.
func (f Folder) Remove(k eni.Key) error {
	if err := unix.Unlink(f.pathOf(k)); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
		return mounts.Explain(f.Path, fmt.Errorf("remove record of %s at %s: %w", k, f.pathOf(k), err))
	}
	return nil
}

// All returns all records in the order of their names, and an error for each that
// can't be read. It is to be called under the lock: it removes what a crash left
// half written.
func (f Folder) All() ([]Record, error) {
	return f.readAll(func(half string) { _ = unix.Unlink(half) })
}

// AllUnlocked is All for callers that only read: it needs no lock and changes nothing. Records
// come and go meanwhile, each as a whole.
func (f Folder) AllUnlocked() ([]Record, error) { return f.readAll(func(string) {}) }

// readAll hands what is half written to onHalf.
func (f Folder) readAll(onHalf func(path string)) ([]Record, error) {
	entries, err := os.ReadDir(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pod records: %w", err)
	}
	var list []Record
	var errs Errors
	for _, e := range entries {
		name := filepath.Join(f.Path, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), temporary):
			onHalf(name)
			continue
		case e.IsDir() || !strings.HasPrefix(e.Name(), netconf.VethPrefix):
			continue
		}
		text, err := readFile(name)
		if errors.Is(err, unix.ENOENT) {
			continue // AllUnlocked holds no lock: it was removed since the folder was listed
		}
		var r Record
		if err == nil {
			r, err = decodeRecord(text)
		}
		if err != nil {
			errs = append(errs, &FileError{name, err})
			continue
		}
		list = append(list, r)
	}
	if len(errs) > 0 {
		return list, errs
	}
	return list, nil
}

// Errors are those of several records.
type Errors []*FileError

// Error returns a line for each.
func (e Errors) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap returns each.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

// maxRecord is far more than a pod can ask for: 65,535 ports of each protocol.
const maxRecord = 16 << 20

// readFile reads a file by plain system calls: os.ReadFile costs several more.
func readFile(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var text []byte
	for buffer := make([]byte, 4096); len(text) <= maxRecord; {
		n, err := unix.Read(fd, buffer)
		if n <= 0 || err != nil {
			return text, err
		}
		text = append(text, buffer[:n]...)
	}
	return nil, fmt.Errorf("%w: it has more than %d bytes", ErrDamaged, maxRecord)
}
