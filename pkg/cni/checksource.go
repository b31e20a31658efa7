package cni

import (
	"errors"
	"fmt"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"golang.org/x/sys/unix"
)

// checkSources looks up the pod's addresses in the routing map, one by one, and returns a
// line for each that is missing or wrong. Without its element, or with that of another ENI,
// all that the pod sends leaves by an ENI that the address is not on, and the cloud drops it.
func checkSources(settings ipam.Settings, held ipam.Lease) ([]string, error) {
	if settings.Routing != ipam.Map {
		return nil, nil // its rules are checked with the rest of the kernel
	}
	var lines []string
	table := nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftTableName}
	for _, a := range held.Addresses {
		if a.ENI == 0 {
			continue // what is in no map leaves by ENI 0
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

// errNoSource: the packet filter does not lead what a pod sends to the ENI of its address. What finds that adds what is
// missing before it, and tellRepair who puts it right behind it.
var errNoSource = errors.New("pods on secondary ENIs would be cut off")

// tellRepair adds to an errNoSource who puts the packet filter right. Where something undoes that each time, as the agent
// has said, neither the next try nor the agent helps for long.
func (p *Plugin) tellRepair(err error) error {
	if !errors.Is(err, errNoSource) {
		return err
	}
	_, runs := p.Cache.Agent()
	switch {
	case !runs:
		return fmt.Errorf("%w; on a node that is to have no agent `enipoolctl pool load` puts it right", err)
	case p.Cache.AgentAway() != "": // it is stopped, and tellAgentAway says what to do
		return err
	}
	if _, undone, is := strings.Cut(p.Cache.Why(), netconf.UndoneWords); is {
		return fmt.Errorf("%w; %s%s", err, netconf.UndoneWords, undone)
	}
	return fmt.Errorf("%w; the agent puts it right within seconds", err)
}

// refuseCutOff refuses a lease whose pod would reach nothing: somebody took enipool's table
// away, or emptied it, and it is not back yet. Pods of ENI 0 cost nothing here.
//
// Where the ENI's link is missing that is the cause, and an address of another ENI does.
func refuseCutOff(kernel *host.Host, settings ipam.Settings, lease ipam.Lease) error {
	lines, err := checkSources(settings, lease)
	if sound := err == nil && len(lines) == 0; sound && settings.Routing == ipam.Map || lease.Interface.Index == 0 && sound {
		return nil
	}
	if there, linkErr := kernel.HasLink(lease.Interface.Device); linkErr == nil && !there {
		return &host.HeldError{Addr: lease.Addresses[0].Addr, Cause: ipam.NoLinkCause(lease.Interface)}
	}
	return cutOff(lines, err)
}

// cutOff makes an error of what checkSources found.
func cutOff(lines []string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("the plugin lacks CAP_NET_ADMIN in the node's user namespace: %w", err)
	case err != nil: // a kernel that has no nftables any more leads nothing either
		return fmt.Errorf("packet filter: %w: %w", err, errNoSource)
	case len(lines) > 0:
		return fmt.Errorf("packet filter: %s: %w", strings.Join(lines, "; "), errNoSource)
	}
	return nil
}

// refuseAllCutOff returns an error if pods of all secondary ENIs would reach nothing. An ENI
// whose link is missing is no proof of that: others may do.
func refuseAllCutOff(state *ipam.State) error {
	err := cutOff(checkSources(state.Settings, sampleAddress(state, nil)))
	if err == nil {
		return nil
	}
	kernel, hostErr := host.NewHere()
	if hostErr != nil {
		return errors.Join(err, hostErr)
	}
	defer kernel.Close()
	missing := map[int]bool{}
	for _, nic := range state.ENIs {
		there, linkErr := kernel.HasLink(nic.Device)
		missing[nic.Index] = linkErr == nil && !there
	}
	return cutOff(checkSources(state.Settings, sampleAddress(state, missing)))
}

// sampleAddress returns a lease with one address of each family on secondary ENIs, but for
// those that are missing. One is enough: what removes enipool's table removes all elements.
func sampleAddress(state *ipam.State, missing map[int]bool) (lease ipam.Lease) {
	known := map[eni.Family]bool{}
	for _, a := range state.Addresses {
		usable := a.State == eni.Free || a.State == eni.Used || a.State == eni.Reserved
		if f := a.Family(); usable && a.ENI > 0 && !missing[a.ENI] && !known[f] {
			known[f] = true
			lease.Addresses = append(lease.Addresses, a)
		}
	}
	return lease
}
