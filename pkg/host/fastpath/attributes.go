package fastpath

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/enipool/enipool/pkg/nlmsg"
	"golang.org/x/sys/unix"
)

// attributes are those of a netlink message by type. No type that is read here is
// above them. Rules are read without a map: there may be ten thousand.
type attributes [16][]byte

// headSize is the length of struct nfgenmsg, behind which the attributes of a message stand.
const headSize = 4

// each calls do for every attribute. One that is cut short is an error: a rule without the
// condition behind it would look as if it applied to everything.
func each(data []byte, do func(kind uint16, value []byte) error) error {
	for len(data) >= unix.SizeofNlAttr { // what is shorter is padding
		kind, value, rest, err := nlmsg.NextAttribute(data)
		if err == nil {
			err = do(kind, value)
		}
		if err != nil {
			return err
		}
		data = rest
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
