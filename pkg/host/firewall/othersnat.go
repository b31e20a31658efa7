package firewall

import (
	"context"
	"fmt"
	"slices"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/google/nftables"
)

// OthersPorts returns the ports of the node that the portmap plugin leads to its pods, and
// the host ports of f that other rules lead elsewhere before enipool's come. Where there is
// nothing of the kind it costs a list of chains.
func OthersPorts(ctx context.Context, f netconf.Firewall) ([]netconf.OthersPort, []netconf.TakenPort, error) {
	o, err := newOthersNat()
	if err != nil {
		return nil, nil, err
	}
	list, err := o.readPortmapped(ctx)
	if err != nil {
		return nil, nil, err
	}
	taken, err := o.findTaken(ctx, f)
	return list, taken, err
}

// othersNat is what translates ports on the node. Nothing of it is read twice.
type othersNat struct {
	chains []*nftables.Chain
	legacy map[eni.Family]natDump
}

// natDump is table nat in the words of `iptables -S`.
type natDump struct {
	tool  string
	lines []string
}

func newOthersNat() (*othersNat, error) {
	c, err := nftConn()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	chains, err := c.ListChains()
	if err != nil && !noNftables(err) {
		return nil, fmt.Errorf("list nftables chains: %w", err)
	}
	return &othersNat{chains, map[eni.Family]natDump{}}, nil
}

func (o *othersNat) ofFamily(family eni.Family) (list []*nftables.Chain) {
	for _, c := range o.chains {
		if c.Table.Family == tableFamily(family) {
			list = append(list, c)
		}
	}
	return list
}

func tableFamily(f eni.Family) nftables.TableFamily {
	if f == eni.IPv6 {
		return nftables.TableFamilyIPv6
	}
	return nftables.TableFamilyIPv4
}

// legacyNat returns what legacy iptables has, nothing where nobody can look.
func (o *othersNat) legacyNat(family eni.Family) (natDump, error) {
	if d, read := o.legacy[family]; read {
		return d, nil
	}
	var d natDump
	names, err := legacyTables(family)
	if err == nil && slices.Contains(names, "nat") {
		d, err = dumpNat(family, true)
	}
	if err == nil {
		o.legacy[family] = d
	}
	return d, err
}

func dumpNat(family eni.Family, legacy bool) (natDump, error) {
	t, err := findVariant(family, legacy)
	if isNotInstalled(err) {
		return natDump{}, nil
	}
	if err != nil {
		return natDump{}, err
	}
	lines, err := t.dumpTable("nat")
	return natDump{t.name, lines}, err
}
