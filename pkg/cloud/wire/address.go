package wire

import (
	"fmt"
	"net/netip"

	"github.com/enipool/enipool/pkg/eni"
)

// Addr reads an address of the family. It refuses an address with a zone and an IPv4-mapped IPv6
// address, which no ENI can have.
func Addr(text string, f eni.Family) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() || eni.FamilyOf(a) != f {
		return netip.Addr{}, fmt.Errorf("address %q is no %s address", text, f)
	}
	return a, nil
}

// Range reads the range of a subnet. It must have at least four addresses.
func Range(text string, f eni.Family) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || eni.FamilyOf(p.Addr()) != f || p.Bits() > f.Bits()-2 {
		return netip.Prefix{}, fmt.Errorf("range %q is no %s range", text, f)
	}
	return p, nil
}

// Texts writes addresses or prefixes in the form that requests have them.
func Texts[T fmt.Stringer](list []T) (texts []string) {
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return texts
}
