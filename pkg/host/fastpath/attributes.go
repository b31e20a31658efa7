package fastpath

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// attributes are those of a netlink message by type. No type that is read here is
// above them. Rules are read without a map: there may be ten thousand.
type attributes [16][]byte

// headSize is that of an attribute's length and type, typeBits what of the latter are
// no flags.
const headSize, typeBits = 4, 0x3fff

// each calls do for every attribute.
func each(data []byte, do func(kind uint16, value []byte) error) error {
	for len(data) >= headSize {
		length := int(binary.NativeEndian.Uint16(data))
		if length < headSize || length > len(data) {
			return errors.New("a netlink attribute is cut off")
		}
		if err := do(binary.NativeEndian.Uint16(data[2:])&typeBits, data[headSize:length]); err != nil {
			return err
		}
		data = data[min(len(data), (length+3)&^3):]
	}
	return nil
}

func fields(data []byte) (list attributes, err error) {
	err = each(data, func(kind uint16, value []byte) error {
		if int(kind) < len(list) {
			list[kind] = value
		}
		return nil
	})
	return list, err
}

// decodeWord reads a value of four bytes, in the machine's order as registers hold it.
func decodeWord(data []byte) (uint32, error) {
	f, err := fields(data)
	if err != nil || len(f[unix.NFTA_DATA_VALUE]) != 4 {
		return 0, errors.Join(err, errors.New("no value of four bytes"))
	}
	return binary.NativeEndian.Uint32(f[unix.NFTA_DATA_VALUE]), nil
}

// decodeNumber reads an attribute of four bytes, 0 if it is not there.
func decodeNumber(data []byte) uint32 {
	if len(data) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(data)
}

func trimZeros(data []byte) string { return string(bytes.TrimRight(data, "\x00")) }
