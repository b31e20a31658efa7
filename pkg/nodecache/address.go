package nodecache

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
)

// Most bytes of names that only inform; names that identify an attachment are never cut.
const (
	maxNamespace = 63
	maxUID       = 64
)

func encodeAddress(address *eni.Address) (string, error) {
	state := address.State.String()
	if address.Lost {
		state = lostName
	}
	if address.State == eni.Held {
		return encodeHeld(address), nil
	}
	if address.Reservation != nil {
		return encodeReservation(address)
	}
	text := encodeStart(address, state, address.Since)
	if address.State != eni.Used {
		return text, nil
	}
	owner := address.Owner
	text = strings.Join([]string{text, owner.Kind.String(), escape(owner.Network), escape(owner.Container), escape(owner.IfName), escape(owner.Netns),
		strconv.FormatUint(owner.NetnsInode, 10), cutField(escape(owner.Namespace), maxNamespace), cutField(escape(owner.UID), maxUID)}, " ")
	if len(text)+2 > textSize {
		return "", fmt.Errorf("%w: network, container id and namespace path have %d bytes together", ErrOwnerTooLong, len(owner.Network)+len(owner.Container)+len(owner.Netns))
	}
	return text + " " + cutField(escape(owner.Pod), textSize-len(text)-1), nil
}

// encodeStart returns what all address lines begin with. It does without package fmt, which
// would take as long as all else that an ADD does for its line.
func encodeStart(address *eni.Address, state string, since time.Duration) string {
	return strings.Join([]string{leftOf(address.Addr.String(), 22), rightOf(strconv.Itoa(address.ENI), 3), leftOf(state, 9), encodeSince(since)}, " ")
}

// ownerAt is where the owner of a used address stands in a line.
const ownerAt = 52

// leftOf puts a word to the left of a column.
func leftOf(word string, width int) string {
	return word + strings.Repeat(" ", max(0, width-len(word)))
}

// rightOf puts it to the right.
func rightOf(word string, width int) string {
	return strings.Repeat(" ", max(0, width-len(word))) + word
}

// cutField keeps the start of a word.
func cutField(word string, most int) string { return word[:min(len(word), most)] }

// decodeAddress reads an address line into a, which must be zero. It allocates
// nothing but owners.
func decodeAddress(text []byte, address *eni.Address) (err error) {
	var fields []byte
	fields, text = shortField(text)
	if address.Addr, err = decodeAddr(fields); err != nil {
		return err
	}
	fields, text = shortField(text)
	if address.ENI, err = strconv.Atoi(string(fields)); err != nil {
		return err
	}
	fields, text = shortField(text)
	if address.State, address.Lost, err = decodeState(fields, address); err != nil {
		return err
	}
	fields, text = shortField(text)
	if address.Since, err = decodeSince(fields); err != nil {
		return err
	}
	switch {
	case address.State == eni.Used:
		if address.Owner, text, err = decodeOwner(text); err == nil && (address.Reservation != nil || address.Lost) {
			err = decodeClaim(text, address)
		}
	case address.State == eni.Reserved:
		decodeReservation(text, address.Reservation)
	case address.State == eni.Releasing:
		if word, _ := shortField(text); len(word) > 0 {
			address.Reservation = &eni.Reservation{}
			decodeReservation(text, address.Reservation)
		}
	case address.State == eni.Cooling && address.Since == heldSince:
		decodeHeld(text, address)
	case address.State == eni.Held: // writers have held addresses as cooling ones: see held.go
		return fmt.Errorf("state %q can't be read", eni.Held)
	}
	return err
}

// decodeAddr reads a dotted quad itself, because netip.ParseAddr keeps its
// argument and would need a copy of each.
func decodeAddr(fields []byte) (netip.Addr, error) {
	var quad [4]byte
	part, digits, value := 0, 0, 0
	for i := 0; i <= len(fields); i++ {
		switch {
		case i < len(fields) && fields[i] >= '0' && fields[i] <= '9' && digits < 3 && (digits == 0 || value > 0):
			value, digits = value*10+int(fields[i]-'0'), digits+1
		case (i == len(fields) && part == 3 || i < len(fields) && fields[i] == '.' && part < 3) && digits > 0 && value < 256:
			quad[part] = byte(value)
			part, digits, value = part+1, 0, 0
		default:
			return netip.ParseAddr(string(fields))
		}
	}
	return netip.AddrFrom4(quad), nil
}

// lostName stands in the place of a used address's state when it is lost.
const lostName = "lost"

// decodeState reads the word of a state. It gives an address that is kept for a pod an empty reservation.
func decodeState(fields []byte, address *eni.Address) (s eni.State, lost bool, err error) {
	for s := eni.Free; s <= eni.Releasing; s++ {
		if string(fields) == s.String() {
			return s, false, nil
		}
	}
	switch string(fields) {
	case lostName:
		return eni.Used, true, nil
	case claimedName:
		address.Reservation = &eni.Reservation{}
		return eni.Used, false, nil
	case reservedName:
		address.Reservation = &eni.Reservation{}
		return eni.Reserved, false, nil
	}
	s, err = eni.ParseState(string(fields))
	return s, false, err
}

func encodeSince(since time.Duration) string {
	ms := (since + time.Millisecond - 1).Milliseconds() // up: an address must not cool too short
	return rightOf(strconv.FormatInt(ms/1000, 10), 10) + "." + strconv.FormatInt(1000+ms%1000, 10)[1:]
}

func decodeSince(fields []byte) (time.Duration, error) {
	dot := len(fields) - len(".000")
	if dot < 1 || dot > len("4294967296") || fields[dot] != '.' {
		return 0, fmt.Errorf("time since boot %q can't be read", fields)
	}
	var ms time.Duration
	for i, c := range fields {
		if i == dot {
			continue
		}
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("time since boot %q can't be read", fields)
		}
		ms = ms*10 + time.Duration(c-'0')
	}
	if ms > latest {
		return 0, fmt.Errorf("time since boot %q is longer than any", fields)
	}
	return ms * time.Millisecond, nil
}

// latest is the most milliseconds that a Duration holds, without the one that encodeSince may add: 292 years.
const latest = math.MaxInt64/time.Millisecond - 1

// ownerPrefix is how the key stands in a line, after the kind.
func ownerPrefix(k eni.Key) []byte {
	return []byte(" " + escape(k.Network) + " " + escape(k.Container) + " " + escape(k.IfName) + " ")
}

// usedByAnother tells whether the line is that of a used address whose owner is not the one
// with the prefix. It ignores the checksum: a damaged line that still says "used" is nothing
// that this attachment may take or free, as little as a sound one.
func usedByAnother(text, prefix []byte) bool {
	// This runs for thousands of lines, and in nearly all of them each word stands in its
	// column: they need not be searched.
	if text[22] == ' ' && text[26] == ' ' && string(text[27:32]) == "used " && text[ownerAt-1] == ' ' {
		kind := bytes.IndexByte(text[ownerAt:], ' ')
		return kind < 0 || !bytes.HasPrefix(text[ownerAt+kind:], prefix)
	}
	var fields []byte
	for range 3 { // address, ENI, state
		fields, text = shortField(text)
	}
	if string(fields) != "used" && string(fields) != lostName {
		return false
	}
	for range 2 { // since, kind
		_, text = shortField(text)
	}
	return !bytes.HasPrefix(text, prefix)
}

// decodeOwner reads an owner and returns what follows it.
func decodeOwner(text []byte) (*eni.Owner, []byte, error) {
	kind, text := nextField(text)
	owner := &eni.Owner{}
	var err error
	if owner.Kind, err = eni.ParseKind(string(kind)); err != nil {
		return nil, nil, err
	}
	var fields []byte
	for _, p := range [...]*string{&owner.Network, &owner.Container, &owner.IfName, &owner.Netns} {
		fields, text = nextField(text)
		*p = unescape(string(fields))
	}
	fields, text = nextField(text)
	if owner.NetnsInode, err = strconv.ParseUint(string(fields), 10, 64); err != nil {
		return nil, nil, err
	}
	for _, p := range [...]*string{&owner.Namespace, &owner.UID, &owner.Pod} {
		fields, text = nextField(text)
		*p = unescape(string(fields))
	}
	return owner, text, nil
}

// shortField is nextField for words so short that looking at each byte is faster than
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

// nextField cuts the first blank-separated word off text.
func nextField(text []byte) (word, rest []byte) {
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
