package nodecache

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Names that only inform are cut; those that identify never are.
const (
	maxNamespace = 63
	maxUID       = 64
)

func encodeAddress(a *eni.Address) (string, error) {
	state := a.State.String()
	if a.Lost {
		state = lostName
	}
	if a.State == eni.Held {
		return encodeHeld(a), nil
	}
	text := encodeStart(a, state, a.Since)
	if a.State != eni.Used {
		return text, nil
	}
	o := a.Owner
	text = strings.Join([]string{text, o.Kind.String(), escape(o.Network), escape(o.Container), escape(o.IfName), escape(o.Netns),
		strconv.FormatUint(o.NetnsInode, 10), cut(escape(o.Namespace), maxNamespace), cut(escape(o.UID), maxUID)}, " ")
	if len(text)+2 > textSize {
		return "", fmt.Errorf("%w: network, container id and namespace path have %d bytes together", ErrOwnerTooLong, len(o.Network)+len(o.Container)+len(o.Netns))
	}
	return text + " " + cut(escape(o.Pod), textSize-len(text)-1), nil
}

// encodeStart returns what all address lines begin with. It leaves package fmt alone,
// which takes as long as all else that an ADD does for its line.
func encodeStart(a *eni.Address, state string, since time.Duration) string {
	return strings.Join([]string{left(a.Addr.String(), 22), right(strconv.Itoa(a.ENI), 3), left(state, 9), encodeSince(since)}, " ")
}

// ownerAt is where the owner of a used address stands in a line.
const ownerAt = 52

// left puts a word to the left of a column.
func left(word string, width int) string { return word + strings.Repeat(" ", max(0, width-len(word))) }

// right puts it to the right.
func right(word string, width int) string { return strings.Repeat(" ", max(0, width-len(word))) + word }

// cut keeps the start of a word.
func cut(word string, most int) string { return word[:min(len(word), most)] }

// decodeAddress reads an address line into a, which must be zero. It allocates
// nothing but owners.
func decodeAddress(text []byte, a *eni.Address) (err error) {
	var f []byte
	f, text = shortField(text)
	if a.Addr, err = decodeAddr(f); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.ENI, err = strconv.Atoi(string(f)); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.State, a.Lost, err = decodeState(f); err != nil {
		return err
	}
	f, text = shortField(text)
	if a.Since, err = decodeSince(f); err != nil {
		return err
	}
	switch {
	case a.State == eni.Used:
		a.Owner, err = decodeOwner(text)
	case a.State == eni.Cooling && a.Since == heldSince:
		decodeHeld(text, a)
	case a.State == eni.Held: // a name that no writer puts there
		return fmt.Errorf("state %q can't be read", eni.Held)
	}
	return err
}

// decodeAddr reads a dotted quad itself, because netip.ParseAddr keeps its
// argument and would need a copy of each.
func decodeAddr(f []byte) (netip.Addr, error) {
	var quad [4]byte
	part, digits, value := 0, 0, 0
	for i := 0; i <= len(f); i++ {
		switch {
		case i < len(f) && f[i] >= '0' && f[i] <= '9' && digits < 3 && (digits == 0 || value > 0):
			value, digits = value*10+int(f[i]-'0'), digits+1
		case (i == len(f) && part == 3 || i < len(f) && f[i] == '.' && part < 3) && digits > 0 && value < 256:
			quad[part] = byte(value)
			part, digits, value = part+1, 0, 0
		default:
			return netip.ParseAddr(string(f))
		}
	}
	return netip.AddrFrom4(quad), nil
}

// lostName stands in the place of a used address's state when it is lost.
const lostName = "lost"

func decodeState(f []byte) (s eni.State, lost bool, err error) {
	for s := eni.Free; s <= eni.Releasing; s++ {
		if string(f) == s.String() {
			return s, false, nil
		}
	}
	if string(f) == lostName {
		return eni.Used, true, nil
	}
	s, err = eni.ParseState(string(f))
	return s, false, err
}

func encodeSince(since time.Duration) string {
	ms := (since + time.Millisecond - 1).Milliseconds() // up: an address must not cool too short
	return right(strconv.FormatInt(ms/1000, 10), 10) + "." + strconv.FormatInt(1000+ms%1000, 10)[1:]
}

func decodeSince(f []byte) (time.Duration, error) {
	dot := len(f) - len(".000")
	if dot < 1 || dot > len("4294967296") || f[dot] != '.' {
		return 0, fmt.Errorf("time since boot %q can't be read", f)
	}
	var ms time.Duration
	for i, c := range f {
		if i == dot {
			continue
		}
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("time since boot %q can't be read", f)
		}
		ms = ms*10 + time.Duration(c-'0')
	}
	return ms * time.Millisecond, nil
}

// ownerPrefix is how the key stands in a line, after the kind.
func ownerPrefix(k eni.Key) []byte {
	return []byte(" " + escape(k.Network) + " " + escape(k.Container) + " " + escape(k.IfName) + " ")
}

// usedByAnother tells whether the line is one of a used address whose owner is
// not the one with the prefix. It does not look at the checksum: a damaged line
// that still says "used" is as little to be given or taken as a sound one.
func usedByAnother(text, prefix []byte) bool {
	// Thousands of lines are asked this, and in nearly all of them each word stands in
	// its column.
	if text[22] == ' ' && text[26] == ' ' && string(text[27:32]) == "used " && text[ownerAt-1] == ' ' {
		kind := bytes.IndexByte(text[ownerAt:], ' ')
		return kind < 0 || !bytes.HasPrefix(text[ownerAt+kind:], prefix)
	}
	var f []byte
	for range 3 { // address, ENI, state
		f, text = shortField(text)
	}
	if string(f) != "used" && string(f) != lostName {
		return false
	}
	for range 2 { // since, kind
		_, text = shortField(text)
	}
	return !bytes.HasPrefix(text, prefix)
}

func decodeOwner(text []byte) (*eni.Owner, error) {
	kind, text := field(text)
	o := &eni.Owner{}
	var err error
	if o.Kind, err = eni.ParseKind(string(kind)); err != nil {
		return nil, err
	}
	var f []byte
	for _, p := range [...]*string{&o.Network, &o.Container, &o.IfName, &o.Netns} {
		f, text = field(text)
		*p = unescape(string(f))
	}
	f, text = field(text)
	if o.NetnsInode, err = strconv.ParseUint(string(f), 10, 64); err != nil {
		return nil, err
	}
	for _, p := range [...]*string{&o.Namespace, &o.UID, &o.Pod} {
		f, text = field(text)
		*p = unescape(string(f))
	}
	return o, nil
}

// shortField is field for words so short that looking at each byte is faster than
// a call that looks at many.
func shortField(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	end := start
	for end < len(text) && text[end] != ' ' {
		end++
	}
	return text[start:end], text[end:]
}

// field cuts the first blank-separated word off text.
func field(text []byte) (word, rest []byte) {
	start := 0
	for start < len(text) && text[start] == ' ' {
		start++
	}
	text = text[start:]
	if end := bytes.IndexByte(text, ' '); end >= 0 {
		return text[:end], text[end:]
	}
	return text, nil
}
