package cni

import (
	"errors"
	"fmt"

	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// checkSources looks up the pod's addresses in the routing map, one by one: without
// its element, or with that of another ENI, all that the pod sends leaves by an ENI
// that the address is not on, and the cloud drops it.
func checkSources(s ipam.Settings, held ipam.Lease) ([]string, error) {
	if s.Routing != ipam.Map {
		return nil, nil // its rules are checked with the rest of the kernel
	}
	var lines []string
	table := nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftTableName}
	for _, a := range held.Addresses {
		if a.ENI == 0 {
			continue // by ENI 0 leaves what stands in no map
		}
		set, want := netconf.Source{Addr: a.Addr, ENI: a.ENI}.Element()
		have, found, err := table.Get(set, a.Addr.AsSlice())
		switch {
		case errors.Is(err, unix.EOPNOTSUPP):
			return lines, nil // kernels before 4.15 show whole maps only
		case err != nil:
			return lines, err
		case !found:
			lines = append(lines, fmt.Sprintf("nftables map %s of table inet %s lacks %s", set, table.Name, want))
		case have.Verdict == nil || *have.Verdict != (nfset.Verdict{Code: unix.NFT_GOTO, Chain: want.Verdict.Chain}):
			lines = append(lines, fmt.Sprintf("nftables map %s of table inet %s has another verdict for %s than %q", set, table.Name, a.Addr, want.Verdict))
		}
	}
	return lines, nil
}
