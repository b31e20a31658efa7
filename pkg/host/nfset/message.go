package nfset

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// message builds netlink messages one behind the other.
type message struct{ bytes []byte }

func align(n int) int { return (n + 3) &^ 3 }

// begin opens a message with its nfnetlink header and returns its place for end.
func (m *message) begin(kind, flags uint16, sequence uint32, family byte, resource uint16) int {
	start := len(m.bytes)
	m.bytes = append(m.bytes, 0, 0, 0, 0)
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, kind)
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, flags|unix.NLM_F_REQUEST)
	m.bytes = binary.NativeEndian.AppendUint32(m.bytes, sequence)
	m.bytes = append(m.bytes, 0, 0, 0, 0) // the kernel knows whose socket it is
	m.bytes = append(m.bytes, family, unix.NFNETLINK_V0)
	m.bytes = binary.BigEndian.AppendUint16(m.bytes, resource)
	return start
}

func (m *message) end(start int) {
	binary.NativeEndian.PutUint32(m.bytes[start:], uint32(len(m.bytes)-start))
}

// appendBatchMark begins or ends a transaction.
func (m *message) appendBatchMark(kind uint16, sequence uint32) {
	m.end(m.begin(kind, 0, sequence, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES))
}

// attr appends an attribute and pads it.
func (m *message) attr(kind uint16, value []byte) {
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, uint16(unix.SizeofNlAttr+len(value)))
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, kind)
	m.bytes = append(m.bytes, value...)
	m.bytes = append(m.bytes, make([]byte, align(len(m.bytes))-len(m.bytes))...)
}

func (m *message) text(kind uint16, s string) { m.attr(kind, append([]byte(s), 0)) }

// nest appends an attribute that holds those which fill appends.
func (m *message) nest(kind uint16, fill func()) {
	start := len(m.bytes)
	m.attr(kind|unix.NLA_F_NESTED, nil)
	fill()
	binary.NativeEndian.PutUint16(m.bytes[start:], uint16(len(m.bytes)-start))
}

// appendElement appends a message about one element, so that the answer to each
// change is its own.
func (t Table) appendElement(m *message, kind, flags uint16, sequence uint32, set string, e Element) {
	start := m.begin(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, sequence, t.Family, 0)
	m.text(unix.NFTA_SET_ELEM_LIST_TABLE, t.Name)
	m.text(unix.NFTA_SET_ELEM_LIST_SET, set)
	m.nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func() {
		m.nest(unix.NFTA_LIST_ELEM, func() {
			m.nest(unix.NFTA_SET_ELEM_KEY, func() { m.attr(unix.NFTA_DATA_VALUE, e.Key) })
			if kind != unix.NFT_MSG_NEWSETELEM {
				return // the key says which
			}
			if e.Value != nil {
				m.nest(unix.NFTA_SET_ELEM_DATA, func() { m.attr(unix.NFTA_DATA_VALUE, e.Value) })
			}
			if e.Verdict != nil {
				m.nest(unix.NFTA_SET_ELEM_DATA, func() { m.nest(unix.NFTA_DATA_VERDICT, func() { m.verdict(*e.Verdict) }) })
			}
		})
	})
	m.end(start)
}

func (m *message) verdict(v Verdict) {
	m.attr(unix.NFTA_VERDICT_CODE, binary.BigEndian.AppendUint32(nil, uint32(v.Code)))
	if v.Chain != "" {
		m.text(unix.NFTA_VERDICT_CHAIN, v.Chain)
	}
}

// decodeElement reads the first element of a message's attributes.
func decodeElement(body []byte) (e Element, ok bool) {
	return decodeItem(find(find(body, unix.NFTA_SET_ELEM_LIST_ELEMENTS), unix.NFTA_LIST_ELEM))
}

func decodeItem(item []byte) (e Element, ok bool) {
	e.Key = find(find(item, unix.NFTA_SET_ELEM_KEY), unix.NFTA_DATA_VALUE)
	data := find(item, unix.NFTA_SET_ELEM_DATA)
	e.Value = find(data, unix.NFTA_DATA_VALUE)
	verdict := find(data, unix.NFTA_DATA_VERDICT)
	if code := find(verdict, unix.NFTA_VERDICT_CODE); len(code) == 4 {
		chain := strings.TrimRight(string(find(verdict, unix.NFTA_VERDICT_CHAIN)), "\x00")
		e.Verdict = &Verdict{int32(binary.BigEndian.Uint32(code)), chain}
	}
	return e, e.Key != nil
}

// find returns the value of the first attribute of the kind, nil if there is none.
func find(b []byte, kind uint16) []byte {
	for is, value := range attributes(b) {
		if is == kind {
			return value
		}
	}
	return nil
}

// items yields the elements of a list.
func items(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for kind, value := range attributes(list) {
			if kind == unix.NFTA_LIST_ELEM && !yield(value) {
				return
			}
		}
	}
}

// attributes yields kind and value of each attribute.
func attributes(b []byte) func(yield func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofNlAttr || length > len(b) {
				return
			}
			kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
			if !yield(kind, b[unix.SizeofNlAttr:length]) {
				return
			}
			b = b[min(align(length), len(b)):]
		}
	}
}
