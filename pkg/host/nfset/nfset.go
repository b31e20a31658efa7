// Package nfset reads and changes single elements of nftables sets and maps. It
// speaks nfnetlink by itself, over one socket and in at most two messages, so that
// the plugin, which may run for every pod, links no nftables library and starts
// no nft. It works in the network namespace of the calling thread.
package nfset

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Table is an nftables table.
type Table struct {
	Family byte // unix.NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6
	Name   string
}

// Element is an element of a set or, with Value or Verdict, of a map. The bytes
// are those of the packet: numbers are in network order (marks and link names as
// the kernel keeps them), and each field of a concatenation is padded to a
// multiple of four bytes.
type Element struct {
	Key     []byte
	Value   []byte
	Verdict *Verdict
}

// Equal tells whether both elements have the same key and lead to the same.
func (e Element) Equal(other Element) bool {
	if !bytes.Equal(e.Key, other.Key) || !bytes.Equal(e.Value, other.Value) || (e.Verdict == nil) != (other.Verdict == nil) {
		return false
	}
	return e.Verdict == nil || *e.Verdict == *other.Verdict
}

// Verdict is what a verdict map has for a key: unix.NFT_JUMP or NFT_GOTO with a
// chain, or NF_ACCEPT and the like without.
type Verdict struct {
	Code  int32
	Chain string
}

// Op says what a Change does.
type Op byte

// The operations. Adding an element that is there as wanted changes nothing; with
// another value it is refused with EBUSY (maps) or EEXIST.
const (
	Add           Op = iota
	AddNew           // refused with EEXIST where the key is there
	Delete           // refused with ENOENT where the key is not there
	DeleteIfThere    // succeeds where the key, the set or the table is not there
)

// Change adds an element to a set or deletes the one with its key.
type Change struct {
	Op      Op
	Set     string
	Element Element
}

// ChangeError is the kernel's answer to a change; errors.Is finds its errno.
type ChangeError struct {
	Change Change
	Errno  unix.Errno
}

// Error says which change was refused and why.
func (e *ChangeError) Error() string {
	verb := "add to"
	if e.Change.Op == Delete || e.Change.Op == DeleteIfThere {
		verb = "delete from"
	}
	return fmt.Sprintf("%s nftables set %s: element %x: %v", verb, e.Change.Set, e.Change.Element.Key, e.Errno)
}

// Unwrap returns the errno.
func (e *ChangeError) Unwrap() error { return e.Errno }

// Conn is a socket for the sets of a table. Its Close waits until the kernel has freed all that
// was deleted, which takes tens of milliseconds: do what else is to be done before it.
type Conn struct {
	Table
	socket socket
}

// Open opens a socket for the table's sets, whether there is such a table or not.
func (t Table) Open() (*Conn, error) {
	s, err := openSocket()
	if err != nil {
		return nil, err
	}
	return &Conn{t, s}, nil
}

// Close closes the socket, see Conn.
func (c *Conn) Close() { c.socket.close() }

// Get is Conn.Get on a socket of its own.
func (t Table) Get(set string, key []byte) (e Element, found bool, err error) {
	c, err := t.Open()
	if err != nil {
		return Element{}, false, err
	}
	defer c.Close()
	return c.Get(set, key)
}

// Commit is Conn.Commit on a socket of its own.
func (t Table) Commit(changes ...Change) error {
	c, err := t.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Commit(changes...)
}

// Commit makes all of the changes, or none and returns why: a *ChangeError for
// each change that the kernel refused.
func (c *Conn) Commit(changes ...Change) error {
	if len(changes) == 0 {
		return nil
	}
	refused, err := c.commitOnce(c.socket, changes)
	// One change that is refused undoes the transaction, but the kernel judges every change of
	// it. So all deletions of what is not there are known after one try. Before the next one
	// somebody may delete another element, so there may be more tries.
	for err == nil && len(refused) > 0 {
		kept, dropped := withoutMissing(changes, refused)
		if dropped != len(refused) || len(kept) == 0 {
			break
		}
		changes = kept
		refused, err = c.commitOnce(c.socket, changes)
	}
	if err != nil {
		return fmt.Errorf("change nftables elements: %w", err)
	}
	var errs []error
	for i, c := range changes { // in their order, which the caller knows
		if errno := refused[i]; errno != 0 && (errno != unix.ENOENT || c.Op != DeleteIfThere) {
			errs = append(errs, &ChangeError{c, errno})
		}
	}
	return errors.Join(errs...)
}

// withoutMissing leaves out the deletions of what is not there, and counts them.
func withoutMissing(changes []Change, refused map[int]unix.Errno) (kept []Change, dropped int) {
	for i, c := range changes {
		if refused[i] == unix.ENOENT && c.Op == DeleteIfThere {
			dropped++
			continue
		}
		kept = append(kept, c)
	}
	return kept, dropped
}

// commitOnce sends one transaction. It returns what the kernel refused, by the
// change's place; if that is anything, nothing was changed.
func (t Table) commitOnce(sock socket, changes []Change) (refused map[int]unix.Errno, err error) {
	var request message
	request.appendBatchMark(unix.NFNL_MSG_BATCH_BEGIN, 0)
	for i, c := range changes {
		kind, flags := uint16(unix.NFT_MSG_NEWSETELEM), uint16(unix.NLM_F_CREATE)
		switch c.Op {
		case AddNew:
			flags |= unix.NLM_F_EXCL
		case Delete, DeleteIfThere:
			kind, flags = unix.NFT_MSG_DELSETELEM, 0
		}
		t.appendElement(&request, kind, flags, uint32(i+1), c.Set, c.Element)
	}
	request.appendBatchMark(unix.NFNL_MSG_BATCH_END, uint32(len(changes)+1))
	sock.makeRoom(len(request.bytes), len(changes))
	replies, err := sock.exchange(request.bytes)
	if err != nil {
		return nil, err
	}
	refused = map[int]unix.Errno{}
	for _, r := range replies {
		switch at := int(r.Sequence) - 1; {
		case r.Errno() == 0:
		case at < 0 || at >= len(changes):
			return nil, r.Errno() // of the transaction as a whole
		default:
			refused[at] = r.Errno()
		}
	}
	return refused, nil
}
