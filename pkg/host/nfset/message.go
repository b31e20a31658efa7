package nfset

import (
	"encoding/binary"
	"strings"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// message builds netlink messages one behind the other.
type message struct{ bytes []byte }

// beginMessage opens a message with its nfnetlink header and returns its place for end.
func (m *message) beginMessage(kind, flags uint16, sequence uint32, family byte, resource uint16) int {
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

func (m *message) endMessage(start int) {
	binary.NativeEndian.PutUint32(m.bytes[start:], uint32(len(m.bytes)-start))
}

// appendBatchMark begins or ends a transaction.
func (m *message) appendBatchMark(kind uint16, sequence uint32) {
	m.endMessage(m.beginMessage(kind, 0, sequence, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES))
}

// appendAttr appends an attribute and pads it.
func (m *message) appendAttr(kind uint16, value []byte) {
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, uint16(unix.SizeofNlAttr+len(value)))
	m.bytes = binary.NativeEndian.AppendUint16(m.bytes, kind)
	m.bytes = append(m.bytes, value...)
	m.bytes = append(m.bytes, make([]byte, nlmsg.Align(len(m.bytes))-len(m.bytes))...)
}

func (m *message) appendText(kind uint16, s string) { m.appendAttr(kind, append([]byte(s), 0)) }

// appendNested appends an attribute that holds those which fill appends.
func (m *message) appendNested(kind uint16, fill func()) {
	start := len(m.bytes)
	m.appendAttr(kind|unix.NLA_F_NESTED, nil)
	fill()
	binary.NativeEndian.PutUint16(m.bytes[start:], uint16(len(m.bytes)-start))
}

// appendElement appends a message about one element, so that the answer to each
// change is its own.
func (t Table) appendElement(request *message, kind, flags uint16, sequence uint32, set string, element Element) {
	start := request.beginMessage(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, sequence, t.Family, 0)
	request.appendText(unix.NFTA_SET_ELEM_LIST_TABLE, t.Name)
	request.appendText(unix.NFTA_SET_ELEM_LIST_SET, set)
	request.appendNested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func() {
		request.appendNested(unix.NFTA_LIST_ELEM, func() {
			request.appendNested(unix.NFTA_SET_ELEM_KEY, func() { request.appendAttr(unix.NFTA_DATA_VALUE, element.Key) })
			if kind != unix.NFT_MSG_NEWSETELEM {
				return // the key says which
			}
			if element.Value != nil {
				request.appendNested(unix.NFTA_SET_ELEM_DATA, func() { request.appendAttr(unix.NFTA_DATA_VALUE, element.Value) })
			}
			if element.Verdict != nil {
				request.appendNested(unix.NFTA_SET_ELEM_DATA, func() {
					request.appendNested(unix.NFTA_DATA_VERDICT, func() { request.appendVerdict(*element.Verdict) })
				})
			}
		})
	})
	request.endMessage(start)
}

func (m *message) appendVerdict(v Verdict) {
	m.appendAttr(unix.NFTA_VERDICT_CODE, binary.BigEndian.AppendUint32(nil, uint32(v.Code)))
	if v.Chain != "" {
		m.appendText(unix.NFTA_VERDICT_CHAIN, v.Chain)
	}
}

// decodeElement reads the first element of a message's attributes.
func decodeElement(body []byte) (e Element, ok bool) {
	return decodeItem(nlmsg.Attribute(nlmsg.Attribute(body, unix.NFTA_SET_ELEM_LIST_ELEMENTS), unix.NFTA_LIST_ELEM))
}

func decodeItem(item []byte) (e Element, ok bool) {
	e.Key = nlmsg.Attribute(nlmsg.Attribute(item, unix.NFTA_SET_ELEM_KEY), unix.NFTA_DATA_VALUE)
	data := nlmsg.Attribute(item, unix.NFTA_SET_ELEM_DATA)
	e.Value = nlmsg.Attribute(data, unix.NFTA_DATA_VALUE)
	verdict := nlmsg.Attribute(data, unix.NFTA_DATA_VERDICT)
	if code := nlmsg.Attribute(verdict, unix.NFTA_VERDICT_CODE); len(code) == 4 {
		chain := strings.TrimRight(string(nlmsg.Attribute(verdict, unix.NFTA_VERDICT_CHAIN)), "\x00")
		e.Verdict = &Verdict{int32(binary.BigEndian.Uint32(code)), chain}
	}
	return e, e.Key != nil
}

// splitItems yields the elements of a list.
func splitItems(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for kind, value := range nlmsg.Attributes(list) {
			if kind == unix.NFTA_LIST_ELEM && !yield(value) {
				return
			}
		}
	}
}
