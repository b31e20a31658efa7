package firewall

import "github.com/google/nftables/binaryutil"

// mark is what is known of a packet's or a connection's mark: the bits of known. The
// other bits of value are zero.
type mark struct{ value, known uint32 }

// exactMark is a mark of which all is known.
func exactMark(value uint32) mark { return mark{value, ^uint32(0)} }

// and returns the bits of the mask; the others are zero.
func (m mark) and(mask uint32) mark { return mark{m.value & mask, m.known | ^mask} }

func (m mark) xor(other mark) mark {
	known := m.known & other.known
	return mark{(m.value ^ other.value) & known, known}
}

// with returns the mark with the bits of mask as value has them.
func (m mark) with(value, mask uint32) mark { return m.and(^mask).xor(exactMark(value & mask)) }

// either returns what is known of a mark that is one of the two.
func (m mark) either(other mark) mark {
	known := m.known & other.known &^ (m.value ^ other.value)
	return mark{m.value & known, known}
}

// surelyDiffers tells whether the mark is another than value in the bits of mask, for certain.
func (m mark) surelyDiffers(value, mask uint32) bool { return (m.value^value)&m.known&mask != 0 }

// judgeBits tells whether the bits of mask are value.
func (m mark) judgeBits(value, mask uint32) match {
	switch {
	case value&^mask != 0 || m.surelyDiffers(value, mask):
		return matchesNot
	case m.known&mask == mask:
		return matches
	}
	return mayMatch
}

// registerBytes returns the mark as registers hold it, with what of it is known.
func (m mark) registerBytes() (data, known []byte) {
	return binaryutil.NativeEndian.PutUint32(m.value), binaryutil.NativeEndian.PutUint32(m.known)
}

func markOf(data, known []byte) mark {
	if len(data) != 4 {
		return mark{}
	}
	k := binaryutil.NativeEndian.Uint32(known)
	return mark{binaryutil.NativeEndian.Uint32(data) & k, k}
}

// connmark is what the target CONNMARK of iptables does, as the kernel computes it.
type connmark struct {
	save, restore, unknown bool
	value, ctMask, nfMask  uint32
}

func (c connmark) applyTo(packet, conn mark) (mark, mark) {
	switch {
	case c.unknown:
		return mark{}, mark{}
	case c.save:
		return packet, conn.and(^c.ctMask).xor(packet.and(c.nfMask))
	case c.restore:
		return packet.and(^c.nfMask).xor(conn.and(c.ctMask)), conn
	}
	return packet, conn.and(^c.ctMask).xor(exactMark(c.value))
}
