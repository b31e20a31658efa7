package firewall

import "golang.org/x/sys/unix"

// registers are those of nftables: 16 of four bytes, or 4 of sixteen, that hold the
// same bytes. Fields of a concatenation stand in those that follow each other.
type registers struct {
	data  [16 * 4]byte
	known [16 * 4]byte // which bits of data are known
	last  uint32       // the register that was written last
}

// registerStart is where a register begins.
func registerStart(register uint32) int {
	if register >= unix.NFT_REG32_00 {
		return int(register-unix.NFT_REG32_00) * 4
	}
	return (int(register) - 1) * 16
}

// load puts data into a register, padded to four bytes; nil is what is not known.
func (r *registers) load(register uint32, data []byte) {
	r.loadBits(register, data, nil)
}

// loadBits is load for data of which only the bits of known are, if that is given.
func (r *registers) loadBits(register uint32, data, known []byte) {
	start := registerStart(register)
	if start < 0 || start >= len(r.data) {
		return
	}
	r.last = register
	if data == nil { // nor is its length known: it may fill sixteen bytes
		clear(r.known[start:min(start+16, len(r.known))])
		return
	}
	for i := range (len(data) + 3) / 4 * 4 {
		if at := start + i; at < len(r.data) {
			r.data[at], r.known[at] = 0, 0xff
			if i < len(data) {
				r.data[at] = data[i]
			}
			if i < len(known) {
				r.known[at] = known[i]
			}
		}
	}
}

// readKnown returns that number of bytes from the start of a register, nil if any is not known.
func (r *registers) readKnown(register uint32, length int) []byte {
	data, known := r.readBits(register, length)
	for _, k := range known {
		if k != 0xff {
			return nil
		}
	}
	return data
}

// readBits returns that number of bytes from the start of a register, and which of their bits
// are known.
func (r *registers) readBits(register uint32, length int) (data, known []byte) {
	start := registerStart(register)
	if start < 0 || start+length > len(r.data) {
		return nil, nil
	}
	return r.data[start : start+length], r.known[start : start+length]
}
