package fastpath

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf/btf"
	"github.com/enipool/enipool/pkg/bpf"
)

// programName is what the kernel shows for it.
const programName = "enipool_fast"

// loadProgram has the kernel verify and take the program.
func loadProgram(ct conntrack, m descriptors) (bpf.FD, error) {
	code, err := assemble(ct, m)
	if err != nil {
		return -1, err
	}
	if ct.module == "" {
		return bpf.Load(programName, code, 0)
	}
	module, err := openModule(ct.module)
	if err != nil {
		return -1, err
	}
	defer module.Close()
	return bpf.Load(programName, code, bpf.FD(module.FD()))
}

// openModule opens the type information of a module, whose functions the program
// calls. The kernel lets nobody but CAP_SYS_ADMIN do that.
func openModule(name string) (*btf.Handle, error) {
	var list btf.HandleIterator
	defer list.Handle.Close()
	for list.Next() {
		info, err := list.Handle.Info()
		if err != nil {
			return nil, err
		}
		if info.IsKernel && info.Name == name {
			return list.Take(), nil
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("open type information of module %s: %w", name, err)
	}
	return nil, fmt.Errorf("%w: module %s has no type information", ErrUnsupported, name)
}

func assemble(ct conntrack, m descriptors) ([]byte, error) {
	list := instructions(ct, m)
	list[0] = list[0].WithSymbol(programName)
	var code bytes.Buffer
	if err := list.Marshal(&code, byteOrder()); err != nil {
		return nil, fmt.Errorf("assemble the fast path: %w", err)
	}
	return code.Bytes(), nil
}

// byteOrder is the machine's, as one of the two values that the assembler knows.
func byteOrder() binary.ByteOrder {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return binary.LittleEndian
	}
	return binary.BigEndian
}
