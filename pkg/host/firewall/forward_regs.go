package firewall

import "golang.org/x/sys/unix"

// registers are those of nftables: 16 of four bytes, or 4 of sixteen, that hold the
// same bytes. Fields of a concatenation stand in those that follow each other.
type registers struct {
	data  [16 * 4]byte
	known [16 * 4]bool
}

// place is where a register begins.
func place(register uint32) int {
	if register >= unix.NFT_REG32_00 {
		return int(register-unix.NFT_REG32_00) * 4
	}
	return (int(register) - 1) * 16
}

// load puts data into a register, padded to four bytes; nil is what is not known.
func (r *registers) load(register uint32, data []byte) {
	start := place(register)
	if start < 0 || start >= len(r.data) {
		return
	}
	if data == nil {
		for i := start; i < min(start+16, len(r.data)); i++ {
			r.known[i] = false
		}
		return
	}
	for i := range (len(data) + 3) / 4 * 4 {
		if at := start + i; at < len(r.data) {
			r.data[at], r.known[at] = 0, true
			if i < len(data) {
				r.data[at] = data[i]
			}
		}
	}
}

// read returns so many bytes from the start of a register, nil if any is not known.
func (r *registers) read(register uint32, length int) []byte {
	start := place(register)
	if start < 0 || start+length > len(r.data) {
		return nil
	}
	for _, known := range r.known[start : start+length] {
		if !known {
			return nil
		}
	}
	return r.data[start : start+length]
}
