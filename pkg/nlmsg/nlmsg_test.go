package nlmsg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// messageOf is a message with the length that its header shall say.
func messageOf(kind, flags uint16, length int, body ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(length))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, 7)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, body...)
}

func whole(kind, flags uint16, body ...byte) []byte {
	b := messageOf(kind, flags, nlmsg.HeaderSize+len(body), body...)
	return append(b, make([]byte, nlmsg.Align(len(b))-len(b))...)
}

func attributeOf(kind uint16, length int, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(length))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, nlmsg.Align(len(b))-len(b))...)
}

func split(datagram []byte) (list []nlmsg.Message, err error) {
	for m, failed := range nlmsg.Messages(datagram) {
		if err = failed; err == nil {
			list = append(list, m)
		}
	}
	return list, err
}

func TestMessagesOfADatagram(t *testing.T) {
	two := append(whole(20, unix.NLM_F_MULTI, 1, 2, 3, 4, 5), whole(21, unix.NLM_F_DUMP_INTR, 6)...)
	for _, tt := range []struct {
		name     string
		datagram []byte
		bodies   []string
		err      error
	}{
		{"nothing", nil, nil, nil},
		{"two, the first of which is padded", two, []string{"\x01\x02\x03\x04\x05", "\x06"}, nil},
		{"the last one without its padding", two[:len(two)-3], []string{"\x01\x02\x03\x04\x05", "\x06"}, nil},
		{"the last one cut short", two[:len(two)-4], []string{"\x01\x02\x03\x04\x05"}, nlmsg.ErrCut},
		{"the last header cut short", two[:len(two)-8], []string{"\x01\x02\x03\x04\x05"}, nlmsg.ErrCut},
		{"without a body", whole(20, 0), []string{""}, nil},
		{"of no length", messageOf(20, 0, 0, 1, 2, 3, 4), nil, nlmsg.ErrCut},
		{"shorter than its header", messageOf(20, 0, nlmsg.HeaderSize-1), nil, nlmsg.ErrCut},
		{"longer than what is there", messageOf(20, 0, nlmsg.HeaderSize+1), nil, nlmsg.ErrCut},
		{"longer than an int of 32 bits", messageOf(20, 0, 1<<32-1), nil, nlmsg.ErrCut},
		{"an error without a number", whole(unix.NLMSG_ERROR, 0, 1, 2), nil, nlmsg.ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := split(tt.datagram)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if len(list) != len(tt.bodies) {
				t.Fatalf("%d messages, want %d", len(list), len(tt.bodies))
			}
			for i, m := range list {
				if string(m.Body) != tt.bodies[i] || m.Sequence != 7 {
					t.Errorf("message %d: %+v, want body %x", i, m, tt.bodies[i])
				}
			}
		})
	}
}

func TestNobodyReadsOnBehindWhatHeWanted(t *testing.T) {
	for m := range nlmsg.Messages(append(whole(20, 0), whole(21, 0)...)) {
		if m.Kind != 20 {
			t.Errorf("kind %d after the end", m.Kind)
		}
		break
	}
	for kind := range nlmsg.Attributes(append(attributeOf(1, 4), attributeOf(2, 4)...)) {
		if kind != 1 {
			t.Errorf("attribute %d after the end", kind)
		}
		break
	}
}

func TestEndsOfAnswers(t *testing.T) {
	number := func(n int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(n)) }
	for _, tt := range []struct {
		name      string
		message   []byte
		end, torn bool
		errno     unix.Errno
	}{
		{"a part of a list", whole(20, unix.NLM_F_MULTI, number(-2)...), false, false, 0},
		{"a part of a list that changed", whole(20, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR, 1), false, true, 0},
		{"the end of a list", whole(unix.NLMSG_DONE, 0, number(0)...), true, false, 0},
		{"the end of a list that changed", whole(unix.NLMSG_DONE, unix.NLM_F_DUMP_INTR, number(0)...), true, true, 0},
		{"the end of a list, with nothing to say", whole(unix.NLMSG_DONE, 0), true, false, 0},
		{"the end of a list that broke off", whole(unix.NLMSG_DONE, 0, number(-int32(unix.ENOENT))...), true, false, unix.ENOENT},
		{"an acknowledgement", whole(unix.NLMSG_ERROR, 0, number(0)...), true, false, 0},
		{"a refusal", whole(unix.NLMSG_ERROR, 0, number(-int32(unix.EPERM))...), true, false, unix.EPERM},
		{"a number that is none of an error", whole(unix.NLMSG_DONE, 0, number(3)...), true, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, rest, err := nlmsg.Next(tt.message)
			if err != nil || len(rest) > 0 {
				t.Fatalf("rest %x, error %v", rest, err)
			}
			if m.IsEnd() != tt.end || m.IsTorn() != tt.torn || m.Errno() != tt.errno {
				t.Errorf("end %t, torn %t, errno %v; want %t, %t, %v", m.IsEnd(), m.IsTorn(), m.Errno(), tt.end, tt.torn, tt.errno)
			}
		})
	}
}

func TestAttributesOfAMessage(t *testing.T) {
	two := append(attributeOf(3|unix.NLA_F_NESTED, 5, 'a'), attributeOf(4|unix.NLA_F_NET_BYTEORDER, 6, 'b', 'c')...)
	for _, tt := range []struct {
		name string
		list []byte
		want string
		err  error // where the first one is taken that is not there
	}{
		{"nothing", nil, "", nlmsg.ErrCut},
		{"two, without their flags", two, "3:a 4:bc ", nlmsg.ErrCut},
		{"the last one without its padding", two[:len(two)-2], "3:a 4:bc ", nlmsg.ErrCut},
		{"the last one cut short", two[:len(two)-3], "3:a ", nlmsg.ErrCut},
		{"the last header cut short", two[:len(two)-6], "3:a ", nlmsg.ErrCut},
		{"an empty one", attributeOf(3, 4), "3: ", nlmsg.ErrCut},
		{"of no length", attributeOf(3, 0, 1, 2), "", nlmsg.ErrCut},
		{"shorter than its header", attributeOf(3, 3, 1, 2), "", nlmsg.ErrCut},
		{"longer than what is there", attributeOf(3, 9, 1, 2), "", nlmsg.ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got bytes.Buffer
			for kind, value := range nlmsg.Attributes(tt.list) {
				got.WriteString(string(rune('0'+kind)) + ":" + string(value) + " ")
			}
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
			rest, err := tt.list, error(nil)
			for err == nil {
				_, _, rest, err = nlmsg.NextAttribute(rest)
			}
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
		})
	}
}

func TestAttributeFindsTheFirstOfItsKind(t *testing.T) {
	list := append(append(attributeOf(1, 5, 'a'), attributeOf(2, 4)...), attributeOf(1, 5, 'b')...)
	if got := nlmsg.Attribute(list, 1); string(got) != "a" {
		t.Errorf("got %q, want a", got)
	}
	if got := nlmsg.Attribute(list, 2); got == nil || len(got) > 0 {
		t.Errorf("got %q, want an empty value", got)
	}
	if got := nlmsg.Attribute(list, 3); got != nil {
		t.Errorf("got %q of a kind that is not there", got)
	}
}

func FuzzNothingIsReadBeyondTheBytes(f *testing.F) {
	f.Add(whole(20, 0, attributeOf(1, 5, 'a')...))
	f.Add(messageOf(20, 0, 0))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		length := 0
		for m, err := range nlmsg.Messages(datagram) {
			if err != nil {
				continue
			}
			length += nlmsg.HeaderSize + len(m.Body)
			inner := 0
			for _, value := range nlmsg.Attributes(m.Body) {
				inner += 4 + len(value)
			}
			if inner > len(m.Body) {
				t.Errorf("attributes of %d bytes in %d", inner, len(m.Body))
			}
		}
		if length > len(datagram) {
			t.Errorf("messages of %d bytes in %d", length, len(datagram))
		}
	})
}
