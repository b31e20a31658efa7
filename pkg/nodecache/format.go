package nodecache

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Version is the newest format that this package writes: the one for what is reserved (reserved.go). It
// writes version 1 where that says all, and reads every file whose head says "min" of at most this.
const Version = 2

// A file is lines of lineSize bytes. 512 divides the page size, so one pwrite of
// one line lands in one page, and a SIGKILL can't cut it.
const (
	lineSize = 512
	sumSize  = 8            // hex digits at the end of each line
	bodySize = lineSize - 2 // less the blank before the sum and the newline
	textSize = bodySize - sumSize
)

// maxSize bounds what is read into memory: about 130,000 addresses.
const maxSize = 64 << 20

const magic = "enipool-node-cache"

// columns stands above the addresses for people; programs check only its sum.
const columns = "# address              eni state              since owner: kind network container ifname netns inode namespace uid pod"

// snapshot is a decoded file.
type snapshot struct {
	ipam.State
	boot       string
	version    int // of the oldest reader
	generation uint64
	lines      []int // line number of each of State.Addresses
}

// lineSum covers a line's text and its place, so that a line copied or moved within
// the file is as damaged as a changed one. Of the CRCs with hardware support this
// is the one whose tables are made in no time: a plugin makes them at each start.
func lineSum(text []byte, line int) uint32 {
	return crc32.Update(uint32(line), crc32.IEEETable, text)
}

// appendLine pads text, adds the sum and appends it all to file as line number n.
func appendLine(file []byte, text string, n int) []byte {
	start := len(file)
	file = append(file, text...)
	for len(file)-start < textSize {
		file = append(file, ' ')
	}
	file = append(file, ' ')
	file = hex.AppendEncode(file, binary.BigEndian.AppendUint32(nil, lineSum(file[start:start+textSize], n)))
	return append(file, '\n')
}

// textOf returns the words of a line, without the blanks that fill it.
func textOf(line []byte) string { return string(bytes.TrimRight(line[:textSize], " ")) }

// intact tells whether line n of the file is as it was written.
func intact(line []byte, n int) bool {
	want := lineSum(line[:textSize], n)
	if line[textSize] != ' ' || line[lineSize-1] != '\n' {
		return false
	}
	var got [sumSize / 2]byte
	_, err := hex.Decode(got[:], line[textSize+1:lineSize-1])
	return err == nil && binary.BigEndian.Uint32(got[:]) == want
}

// encode renders the whole file. It fails if a line does not fit.
func encode(state *ipam.State, boot string, generation uint64) ([]byte, error) {
	settings := encodeSettings(state.Settings)
	enis := make([]string, len(state.ENIs))
	for i, nic := range state.ENIs {
		var more []string
		enis[i], more = encodeENI(nic)
		settings = append(settings, more...)
	}
	texts := make([]string, 0, len(settings)+len(state.ENIs)+2)
	version := versionOf(state)
	texts = append(texts, fmt.Sprintf("%s %d min %d boot %s gen %d settings %d enis %d addresses %d",
		magic, version, version, boot, generation, len(settings), len(state.ENIs), len(state.Addresses)))
	texts = append(texts, settings...)
	texts = append(texts, enis...)
	texts = append(texts, columns)
	file := make([]byte, 0, (len(texts)+len(state.Addresses))*lineSize)
	for n, text := range texts {
		if len(text) > textSize {
			return nil, fmt.Errorf("line %d of the node cache has %d bytes, more than %d: %.60s", n+1, len(text), textSize, text)
		}
		file = appendLine(file, text, n)
	}
	for i := range state.Addresses {
		text, err := encodeAddress(&state.Addresses[i])
		if err != nil {
			return nil, err
		}
		file = appendLine(file, text, len(texts)+i)
	}
	return file, nil
}

// decode reads a whole file of size bytes. A damaged address line is set aside
// in State.Damaged; any other damage makes the file unusable. With a key the
// addresses that others use are left out, unread: an ADD has no use for them, and reading
// thousands of them takes longer than everything else that it does.
func decode(r io.ReaderAt, size int64, only *eni.Key) (*snapshot, error) {
	if size == 0 || size%lineSize != 0 {
		return nil, wrongSize(r, size)
	}
	lines := &lineReader{r: r, count: int(size / lineSize)}
	if m, ok := r.(mapped); ok {
		lines.buf = m
	}
	line, err := lines.read(0)
	if err != nil {
		return nil, err
	}
	// The version comes before the sum: a future format may have another one.
	found, err := decodeHead(textOf(line), Version)
	if err != nil {
		return nil, err
	}
	if !intact(line, 0) {
		return nil, damaged("line 1: its checksum does not hold")
	}
	if want := 1 + found.settings + found.enis + 1 + found.addresses; want != lines.count {
		return nil, damaged("%d lines, the head says %d", lines.count, want)
	}
	snap := &snapshot{boot: found.boot, version: found.oldest, generation: found.generation}
	snap.Settings.PodsInMain = true // until a line says otherwise
	first, ranges := found.settings+found.enis+2, map[int][]netip.Prefix{}
	for n := 1; n < first; n++ {
		line, err := lines.read(n)
		switch {
		case err != nil:
		case !intact(line, n):
			err = damaged("its checksum does not hold")
		case n <= found.settings:
			var read bool
			if read, err = decodePodRanges(textOf(line), ranges); !read {
				err = decodeSetting(textOf(line), &snap.Settings)
			}
		case n <= found.settings+found.enis:
			var nic eni.Interface
			nic, err = decodeENI(textOf(line), ranges)
			snap.ENIs = append(snap.ENIs, nic)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return snap, snap.decodeAddresses(lines, first, only)
}

// wrongSize says why a file is not whole lines: a future format may have lines
// of another width.
func wrongSize(r io.ReaderAt, size int64) error {
	start := make([]byte, min(size, lineSize))
	if _, err := r.ReadAt(start, 0); err == nil {
		if _, err := decodeHead(string(start), Version); errors.Is(err, ErrVersion) {
			return err
		}
	}
	return damaged("%d bytes are not whole lines of %d", size, lineSize)
}

func (s *snapshot) decodeAddresses(lines *lineReader, first int, only *eni.Key) error {
	var prefix []byte
	if only != nil {
		prefix = ownerPrefix(*only)
	}
	// Room for all, even where few of them are wanted: memory that is not used is never touched,
	// while slices that grow touch fresh memory twice.
	s.Addresses = make([]eni.Address, 0, lines.count-first)
	s.lines = make([]int, 0, lines.count-first)
	for n := first; n < lines.count; n++ {
		line, err := lines.read(n)
		if err != nil {
			return err
		}
		text := line[:textSize]
		if only != nil && usedByAnother(text, prefix) {
			continue
		}
		var address eni.Address
		err = decodeAddress(text, &address)
		if !intact(line, n) {
			err = damaged("its checksum does not hold")
		}
		if err != nil {
			s.Damaged = append(s.Damaged, s.damageOf(text, address, n-first, fmt.Sprintf("line %d: %v", n+1, err)))
			continue
		}
		s.Addresses = append(s.Addresses, address)
		s.lines = append(s.lines, n)
	}
	return nil
}

// damageOf returns what can be said of an address line that can't be trusted.
func (s *snapshot) damageOf(text []byte, address eni.Address, record int, cause string) ipam.Damage {
	d := ipam.Damage{Record: record, Addr: address.Addr, Owner: address.Owner, Cause: cause}
	if s.version >= reservedVersion {
		d.Topology, d.Kept = mayBeKept(text)
	}
	// The state alone may be damaged: whose the address is, is told to people.
	if d.Owner == nil && d.Addr.IsValid() && address.State != eni.Reserved {
		d.Owner, _, _ = decodeOwner(text[ownerAt:])
	}
	return d
}

// lineReader reads a file line by line through a small buffer, because fresh memory costs a
// process that lives for milliseconds more than reading. A file that is in memory already is
// read there.
type lineReader struct {
	r     io.ReaderAt
	count int    // lines in the file
	start int    // number of the first line in buf
	buf   []byte // whole lines
}

const bufferLines = 16

// read returns line n, valid until the next call.
func (l *lineReader) read(n int) ([]byte, error) {
	if n < l.start || n >= l.start+len(l.buf)/lineSize {
		size := min(bufferLines, l.count-n) * lineSize
		if cap(l.buf) < size {
			l.buf = make([]byte, size)
		}
		l.start, l.buf = n, l.buf[:size]
		if got, err := l.r.ReadAt(l.buf, int64(n)*lineSize); got < size {
			return nil, fmt.Errorf("read node cache: %w", err)
		}
	}
	return l.buf[(n-l.start)*lineSize:][:lineSize], nil
}

type head struct {
	boot                      string
	oldest                    int // version of a reader
	generation                uint64
	settings, enis, addresses int
}

// decodeHead reads the head for a reader of a version.
func decodeHead(text string, version int) (head, error) {
	fields := strings.Fields(text)
	if len(fields) < 4 || fields[0] != magic || fields[2] != "min" {
		return head{}, damaged("line 1: is not the head of a node cache")
	}
	oldest, err := strconv.Atoi(fields[3])
	if err != nil || oldest > version {
		return head{}, fmt.Errorf("%w: it is version %s and wants a reader of version %s or later, this is %d: use plugin, agent and enipoolctl of one release", ErrVersion, fields[1], fields[3], version)
	}
	// What stands behind these words is a newer writer's. fmt.Sscanf would take as long
	// as a hundred addresses.
	unreadable := func() (head, error) { return head{}, damaged("line 1: head can't be read") }
	if len(fields) < 14 || fields[4] != "boot" || fields[6] != "gen" || fields[8] != "settings" || fields[10] != "enis" || fields[12] != "addresses" {
		return unreadable()
	}
	found := head{boot: fields[5], oldest: oldest}
	if found.generation, err = strconv.ParseUint(fields[7], 10, 64); err != nil {
		return unreadable()
	}
	for at, count := range map[int]*int{9: &found.settings, 11: &found.enis, 13: &found.addresses} {
		if *count, err = strconv.Atoi(fields[at]); err != nil || *count < 0 || *count > maxSize/lineSize {
			return unreadable()
		}
	}
	return found, nil
}
