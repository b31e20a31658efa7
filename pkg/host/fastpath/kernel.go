package fastpath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// conntrack is where this kernel keeps what the program reads of a connection,
// and which of its functions find one. Both differ between kernels; its BTF says.
type conntrack struct {
	lookup, release btf.TypeID // kfuncs
	module          string     // that holds them, "" for the kernel itself

	timeout, status, mark, tcpState int16
	// Both directions' addresses and ports.
	tuples [2]tupleOffsets
}

type tupleOffsets struct{ src, sport, dst, dport int16 }

// ErrUnsupported is what the kernel answers that can't run the program.
var ErrUnsupported = errors.New("this kernel can't run the fast path")

// readConntrack reads the kernel's BTF. It holds a few megabytes while it runs.
func readConntrack() (conntrack, error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return conntrack{}, fmt.Errorf("%w: read its type information: %w", ErrUnsupported, err)
	}
	if err := needRouteMark(spec); err != nil {
		return conntrack{}, err
	}
	ct, err := findConntrack(spec)
	if !errors.Is(err, btf.ErrNotFound) {
		return ct, err
	}
	const module = "nf_conntrack"
	if spec, err = btf.LoadKernelModuleSpec(module); err != nil {
		return ct, fmt.Errorf("%w: read type information of %s: %w", ErrUnsupported, module, err)
	}
	ct, err = findConntrack(spec)
	ct.module = module
	return ct, err
}

func findConntrack(spec *btf.Spec) (ct conntrack, err error) {
	for name, id := range map[string]*btf.TypeID{"bpf_skb_ct_lookup": &ct.lookup, "bpf_ct_release": &ct.release} {
		var fn *btf.Func
		if err := spec.TypeByName(name, &fn); err != nil {
			return ct, fmt.Errorf("%w: it has no %s: %w", ErrUnsupported, name, err)
		}
		if *id, err = spec.TypeID(fn); err != nil {
			return ct, err
		}
	}
	var nfConn *btf.Struct
	if err := spec.TypeByName("nf_conn", &nfConn); err != nil {
		return ct, fmt.Errorf("%w: it has no nf_conn: %w", ErrUnsupported, err)
	}
	for path, at := range map[*int16][]string{
		&ct.timeout: {"timeout"}, &ct.status: {"status"}, &ct.mark: {"mark"}, &ct.tcpState: {"proto", "tcp", "state"},
	} {
		if *path, _, err = find(nfConn, at...); err != nil {
			return ct, err
		}
	}
	first, size, err := find(nfConn, "tuplehash")
	if err != nil {
		return ct, err
	}
	for i := range ct.tuples {
		at := first + int16(i)*size
		ct.tuples[i] = tupleOffsets{src: at, sport: at, dst: at, dport: at}
		for to, path := range map[*int16][]string{
			&ct.tuples[i].src:   {"tuplehash", "tuple", "src", "u3", "ip"},
			&ct.tuples[i].sport: {"tuplehash", "tuple", "src", "u", "all"},
			&ct.tuples[i].dst:   {"tuplehash", "tuple", "dst", "u3", "ip"},
			&ct.tuples[i].dport: {"tuplehash", "tuple", "dst", "u", "all"},
		} {
			offset, _, err := find(nfConn, path...)
			if err != nil {
				return ct, err
			}
			*to += offset - first
		}
	}
	return ct, nil
}

// needRouteMark tells whether the routing tables can be asked with a mark, as they
// can since Linux 6.10. Older kernels would refuse every question.
func needRouteMark(spec *btf.Spec) error {
	var question *btf.Struct
	if err := spec.TypeByName("bpf_fib_lookup", &question); err != nil {
		return fmt.Errorf("%w: it has no bpf_fib_lookup: %w", ErrUnsupported, err)
	}
	if at, _, err := find(question, "mark"); err != nil || at != fibMark {
		return fmt.Errorf("%w: its bpf_fib_lookup takes no mark, which Linux 6.10 was the first to do", ErrUnsupported)
	}
	return nil
}

// find returns the offset of a member of a member of t, and its size; of an
// array that of its first element. It is in bytes.
func find(t btf.Type, path ...string) (offset, size int16, err error) {
	for _, name := range path {
		member, err := memberOf(t, name)
		if err != nil {
			return 0, 0, err
		}
		offset += int16(member.Offset.Bytes())
		t = btf.UnderlyingType(member.Type)
		if array, ok := t.(*btf.Array); ok {
			t = btf.UnderlyingType(array.Type)
		}
	}
	n, err := btf.Sizeof(t)
	return offset, int16(n), err
}

func memberOf(t btf.Type, name string) (btf.Member, error) {
	var members []btf.Member
	switch t := t.(type) {
	case *btf.Struct:
		members = t.Members
	case *btf.Union:
		members = t.Members
	}
	for _, m := range members {
		if m.Name == name {
			return m, nil
		}
		if m.Name != "" {
			continue
		}
		// A member of a nameless part is as good as one of the whole.
		if inner, err := memberOf(btf.UnderlyingType(m.Type), name); err == nil {
			inner.Offset += m.Offset
			return inner, nil
		}
	}
	return btf.Member{}, fmt.Errorf("%w: its %s has no %s", ErrUnsupported, t.TypeName(), name)
}
